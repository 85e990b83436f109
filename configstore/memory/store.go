// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Store is a ConfigStore in memory. Objects given to it are kept as they are, and
// are read-only from then on. Create it with Make.
type Store struct {
	opts    Options
	schemas configstore.Schemas
	kinds   []*kind // in the order of schemas
	history history

	// committed is the revision that readers see. A change becomes visible, with
	// all others of its batch, when this is set to its revision or beyond.
	committed atomic.Uint64
	// snapshot is the last snapshot, or nil if there was a change since.
	snapshot atomic.Pointer[Snapshot]
	sources  sources

	// mu serialises writers. It is held for short sections without callbacks.
	mu sync.Mutex
	// queues are the queues of the store's controllers.
	queues []*notify.Queue[configstore.Change]
	// plan is the memory of the plan in progress.
	plan plan
}

var _ configstore.ConfigStore = (*Store)(nil)

// Make returns an empty store for the given kinds.
func Make(schemas configstore.Schemas, opts ...Options) *Store {
	o := options.One("memory.Make", opts)
	if o.HistoryLimit < 1 {
		o.HistoryLimit = defaultHistory
	}
	s := &Store{opts: o, schemas: schemas, history: history{limit: o.HistoryLimit}}
	s.plan.absent = &object{gone: true}
	for _, schema := range schemas.All() {
		s.kinds = append(s.kinds, newKind(schema, o.Mirror, &s.mu))
	}
	return s
}

// Schemas returns the kinds that the store keeps.
func (s *Store) Schemas() configstore.Schemas { return s.schemas }

// Revision returns the revision of the last committed change; 0 if there was
// none.
func (s *Store) Revision() uint64 { return s.committed.Load() }

// Get implements ConfigStore. It takes no lock and allocates nothing.
func (s *Store) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	k := s.kind(&kind)
	if k == nil {
		return nil
	}
	o := k.get(key{Namespace: namespace, Name: name}, s.committed.Load())
	if o == nil {
		return nil
	}
	o.verify()
	return &o.Config
}

// List implements ConfigStore. The list is kept: without a change in between, the
// next call returns the same slice, takes no lock and allocates nothing.
func (s *Store) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	k := s.kind(&kind)
	if k == nil {
		return nil
	}
	v := k.lists.List(namespace)
	if v == nil {
		return nil
	}
	s.verifyList(k, v.Items)
	return v.Items
}

// kind returns a kind, named by any version, or nil.
func (s *Store) kind(gvk *configstore.GroupVersionKind) *kind {
	if i, ok := s.schemas.Position(gvk); ok {
		return s.kinds[i]
	}
	return nil
}
