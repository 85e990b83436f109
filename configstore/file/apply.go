// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// write is one change that the store needs.
type write struct {
	key configstore.ConfigKey
	// claim is what is written; nil for a deletion.
	claim *claim
}

// apply brings the objects of the keys up to date in the store.
func (s *Source) apply(dirty map[configstore.ConfigKey]struct{}) {
	for len(dirty) > 0 {
		writes := s.diff(dirty)
		clear(dirty)
		for i, err := range s.commit(writes) {
			s.conclude(writes[i], err, dirty)
		}
	}
}

// diff returns what the store needs, in the order in which readers are least
// surprised: what is new before what goes.
func (s *Source) diff(dirty map[configstore.ConfigKey]struct{}) []write {
	var writes, deletes []write
	for key := range dirty {
		have, mine := s.owned[key]
		winner := s.index.winner(key)
		delete(s.retry, key)
		switch {
		case winner == nil && mine && len(s.index.claims[key]) == 0:
			deletes = append(deletes, write{key: key})
		case winner == nil:
			// Nobody mentions the object and it is not ours, or those who do
			// cannot be read: the last good state stays.
		case !mine || have.config != winner.config && !have.config.Equal(*winner.config):
			writes = append(writes, write{key: key, claim: winner})
		}
	}
	byKey := func(a, b write) int { return a.key.Compare(b.key) }
	slices.SortFunc(writes, byKey)
	slices.SortFunc(deletes, byKey)
	return append(writes, deletes...)
}

// conclude notes the outcome of a write.
func (s *Source) conclude(w write, err error, dirty map[configstore.ConfigKey]struct{}) {
	switch {
	case err == nil && w.claim == nil:
		delete(s.owned, w.key)
	case err == nil:
		o := s.owned[w.key]
		o.config = w.claim.config
		if stored := s.store.Get(w.key.Kind, w.key.Name, w.key.Namespace); stored != nil {
			o.created = stored.CreationTimestamp
		}
		s.owned[w.key] = o
		w.claim.previous, w.claim.refused = nil, nil
	case errors.Is(err, configstore.ErrInvalid) && w.claim != nil:
		// The document is at fault: fall back to its last good state, or to
		// another document, until it changes.
		w.claim.refuse(err)
		dirty[w.key] = struct{}{}
	default:
		e := Error{File: s.dir, Object: w.key}
		if w.claim != nil {
			e = w.claim.place
		}
		e.Err = err
		s.retry[w.key] = &e
	}
}

// attempts is how often a write is tried again because somebody else has
// written to the object in between.
const attempts = 10

func (s *Source) commitOne(w write) error {
	for try := 1; ; try++ {
		m, err := s.mutation(w)
		if err != nil {
			return err
		}
		switch c := m.Config; m.Op {
		case configstore.OpCreate:
			_, err = s.store.Create(c)
		case configstore.OpUpdate:
			_, err = s.store.Update(c)
		case configstore.OpDelete:
			err = s.store.Delete(c.GroupVersionKind, c.Name, c.Namespace, &c.ResourceVersion)
		default:
			return nil
		}
		raced := errors.Is(err, configstore.ErrConflict) || errors.Is(err, configstore.ErrNotFound) ||
			errors.Is(err, configstore.ErrAlreadyExists)
		if !raced || try == attempts {
			return err
		}
	}
}

// mutation returns how to write to the object that the store holds. The zero
// mutation means that nothing is to be done.
func (s *Source) mutation(w write) (configstore.Mutation, error) {
	stored := s.store.Get(w.key.Kind, w.key.Name, w.key.Namespace)
	have, mine := s.owned[w.key]
	foreign := stored != nil && (!mine || !have.created.IsZero() && !have.created.Equal(stored.CreationTimestamp))
	switch {
	case w.claim == nil && (stored == nil || foreign):
		// Somebody else has deleted it, and perhaps created another one.
		return configstore.Mutation{}, nil
	case w.claim == nil:
		return configstore.Mutation{Op: configstore.OpDelete, Config: *stored}, nil
	case stored == nil:
		return configstore.Mutation{Op: configstore.OpCreate, Config: *w.claim.config}, nil
	case foreign:
		return configstore.Mutation{}, fmt.Errorf("write %s: %w", w.key.Object(), ErrNotOwned)
	}
	config := *w.claim.config
	config.ResourceVersion = stored.ResourceVersion
	if config.Status == nil && (have.config.Status == nil || !configstore.EqualMessage(have.config.Status, stored.Status)) {
		// A status that files do not speak of belongs to whoever wrote it.
		config.Status = stored.Status
	}
	return configstore.Mutation{Op: configstore.OpUpdate, Config: config}, nil
}
