// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Stage is a Cache of a source together with the configs that a converter derives from it. A batch
// of the source and the derived configs are one batch. A config of the source hides a derived one
// of the same key. Reads are as fresh as the events, and writes return ErrReadOnly. Create a Stage
// with NewStage.
type Stage struct {
	*Cache
	derived *member

	// order is held during a conversion, until its result is committed.
	order sync.Mutex
	begun atomic.Bool
	// refused has the derived configs that are not valid. The lock of the Cache guards it.
	refused map[configstore.ConfigKey]error
}

// NewStage returns the stage of a source, which may be nil. kinds are the kinds of derived configs.
// convert is called with the existing configs of the source as Adds, and then with each batch, on
// the goroutine that delivers the batch. It returns the changes of derived configs. Calls are
// sequential. A lock is held, so convert must not call the Stage. If it panics, the batch has no
// derived configs.
//
// There are no derived configs before Begin. Run runs the source, so the caller must not run it.
func NewStage(
	source configstore.ConfigStoreCache, kinds configstore.Schemas, convert func([]configstore.Change) []configstore.Change,
	opts ...CacheOptions,
) *Stage {
	o := options.One("aggregate.NewStage", opts)
	var sources []configstore.ConfigStoreCache
	schemas := kinds
	if source != nil {
		sources, schemas = append(sources, source), source.Schemas().Union(kinds)
	}
	s := &Stage{Cache: newCache(schemas, sources, o), refused: map[configstore.ConfigKey]error{}}
	s.derived = newMember(len(sources), nil, kinds, s.view)
	for _, m := range s.members {
		m.watcher = nil // because a read must not separate a batch from the derived configs
		m.subscribe(func(m *member, changes []configstore.Change) {
			s.commit(m, changes, func() []configstore.Change { return convert(changes) }, false)
		})
	}
	return s
}

// Begin shows all derived configs, which convert returns as Adds, in one batch. Only the first call
// has an effect.
func (s *Stage) Begin(convert func() []configstore.Change) { s.commit(nil, nil, convert, true) }

// Derive is for derived configs that change without a change of the source. It calls convert as the
// converter is called, and shows the result as one batch.
func (s *Stage) Derive(convert func() []configstore.Change) { s.commit(nil, nil, convert, false) }

// HasSynced reports whether the source has synced, Begin has returned, and every handler registered
// before the first Run, Drain or Flush has processed the events until then.
func (s *Stage) HasSynced() bool { return s.begun.Load() && s.Cache.HasSynced() }

// commit converts changes of the source and shows them and the result as one batch.
func (s *Stage) commit(source *member, changes []configstore.Change, convert func() []configstore.Change, begin bool) {
	s.order.Lock()
	defer s.order.Unlock()
	if begin && s.begun.Load() {
		return
	}
	var seen, derived []configstore.Change
	guard.Call(func() { derived = convert() }).Log(s.logger, "converter")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, change := range changes {
		seen = source.appendChange(seen, change)
	}
	if begin || s.begun.Load() {
		for _, change := range derived {
			if s.accept(change) {
				seen = s.derived.appendChange(seen, change)
			}
		}
	}
	s.queue.Push(seen...)
	s.taken.Inc()
	s.begun.Store(begin || s.begun.Load())
}

// accept reports whether a derived config has the form that its schema requires. Otherwise its last
// state stays. The lock of the Cache must be held.
func (s *Stage) accept(change configstore.Change) bool {
	key := change.Curr.Key()
	delete(s.refused, key)
	schema, _ := s.schemas.Find(key.Kind)
	schema.Validate = nil // that is the converter's
	if _, err := schema.Check(*change.Curr); err != nil && change.Event != configstore.EventDelete {
		s.refused[key] = err
		if s.logger != nil {
			s.logger.Error("config was not published", slog.String("object", key.Object()), slog.Any("error", err))
		}
		return false
	}
	return true
}

// Refused returns the derived configs that are not shown as converted, because their names or
// messages do not have the form that their schemas require. Their last states are shown.
func (s *Stage) Refused() map[configstore.ConfigKey]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.refused)
}
