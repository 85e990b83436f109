// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// write is one change that the store needs.
type write struct {
	key configstore.ConfigKey
	// definition is the state to write, nil for a deletion.
	definition *definition
	// again means that the store has refused the object before.
	again bool
	// created is when the object that is updated was created; zero if that is
	// for the store to say.
	created time.Time
}

// apply brings the objects of the keys up to date in the store.
func (s *Source) apply(dirty map[configstore.ConfigKey]struct{}) {
	changes := s.diff(dirty)
	writes := make([]commit.Write, len(changes))
	for i, w := range changes {
		writes[i] = commit.Write{Mutation: func() (configstore.Mutation, error) { return s.mutation(w) }, Again: w.again}
	}
	for i, err := range commit.All(s.store, writes) {
		s.conclude(changes[i], err)
	}
}

// diff returns the writes that bring the store up to date. Additions and updates come before
// deletions, so that readers see a replacement before the removal.
func (s *Source) diff(dirty map[configstore.ConfigKey]struct{}) []*write {
	var writes, deletes []*write
	for key := range dirty {
		have, mine := s.owned[key]
		effective := s.index.effective(key)
		_, again := s.retry[key]
		delete(s.retry, key)
		switch {
		case effective == nil && mine && len(s.index.definitions[key]) == 0:
			deletes = append(deletes, &write{key: key, again: again})
		case effective == nil, mine && have.config == effective.config:
			// The object is up to date, or no document defines it and it belongs to another writer,
			// or the documents that define it cannot be read and the last good state stays.
		case mine && commit.Equal(s.schemaOf(key), have.config, effective.config):
			// The same object, so that it is recognised by its address.
			effective.config = have.config
		default:
			writes = append(writes, &write{key: key, definition: effective, again: again})
		}
	}
	byKey := func(a, b *write) int { return a.key.Compare(b.key) }
	slices.SortFunc(writes, byKey)
	slices.SortFunc(deletes, byKey)
	return append(writes, deletes...)
}

func (s *Source) schemaOf(key configstore.ConfigKey) *configstore.Schema {
	schema, _ := s.schemas.Find(key.Kind)
	return &schema
}

// conclude notes the outcome of a write.
func (s *Source) conclude(w *write, err error) {
	switch {
	case err == nil && w.definition == nil:
		delete(s.owned, w.key)
	case err == nil:
		if w.created.IsZero() {
			if stored := s.store.Get(w.key.Kind, w.key.Name, w.key.Namespace); stored != nil {
				w.created = stored.CreationTimestamp
			}
		}
		s.owned[w.key] = owned{config: w.definition.config, created: w.created}
	case w.definition != nil:
		s.retry[w.key] = w.definition.error(err)
	default:
		s.retry[w.key] = &Error{File: s.dir, Object: w.key, Err: err}
	}
}

// mutation returns the mutation that applies w to the currently stored object. The zero mutation
// means that there is nothing to do.
func (s *Source) mutation(w *write) (configstore.Mutation, error) {
	stored := s.store.Get(w.key.Kind, w.key.Name, w.key.Namespace)
	have, mine := s.owned[w.key]
	foreign := stored != nil && (!mine || !have.created.IsZero() && !have.created.Equal(stored.CreationTimestamp))
	w.created = time.Time{}
	switch {
	case w.definition == nil && (stored == nil || foreign):
		// Another writer has deleted it, and perhaps created another one.
		return configstore.Mutation{}, nil
	case w.definition == nil:
		return configstore.Mutation{Op: configstore.OpDelete, Config: *stored}, nil
	case stored == nil:
		return configstore.Mutation{Op: configstore.OpCreate, Config: *w.definition.config, Checked: w.definition.checked}, nil
	case foreign:
		return configstore.Mutation{}, fmt.Errorf("write %s: %w", w.key.Object(), ErrNotOwned)
	}
	config := *w.definition.config
	config.ResourceVersion = stored.ResourceVersion
	if config.Status == nil && (have.config.Status == nil || !configstore.EqualMessage(have.config.Status, stored.Status)) {
		// A status that files do not speak of belongs to the writer that set it.
		config.Status = stored.Status
	}
	if w.created = config.CreationTimestamp; !w.created.Equal(stored.CreationTimestamp) {
		w.created = time.Time{} // as the store says, which may have times of its own
	}
	return configstore.Mutation{Op: configstore.OpUpdate, Config: config, Checked: w.definition.checked}, nil
}
