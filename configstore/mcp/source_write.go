// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// write brings the store to the good states of objects, and of those that it has
// refused before.
func (s *Source) write(dirty []*sourceObject) {
	dirty = s.withRefused(dirty)
	writes := s.diff(dirty)
	errs := s.commit(writes)
	for i, o := range writes {
		o.conclude(s.store, errs[i])
	}
	for _, o := range dirty {
		o.checked = nil
		o.kind.note(o)
		o.kind.forget(o)
	}
	s.refused = slices.ContainsFunc(s.kinds, func(k *sourceKind) bool {
		for _, o := range k.bad {
			if o.refused != nil {
				return true
			}
		}
		return false
	})
	s.retryAt = time.Now().Add(s.opts.RetryInterval)
}

// withRefused adds the objects that the store has refused.
func (s *Source) withRefused(dirty []*sourceObject) []*sourceObject {
	if !s.refused {
		return dirty
	}
	known := make(map[*sourceObject]struct{}, len(dirty))
	for _, o := range dirty {
		known[o] = struct{}{}
	}
	for _, k := range s.kinds {
		for _, o := range k.bad {
			if _, ok := known[o]; !ok && o.refused != nil {
				dirty = append(dirty, o)
			}
		}
	}
	return dirty
}

// diff returns the objects of which the store has another state than the good one, in
// the order in which readers are least surprised: what is new before what goes.
func (s *Source) diff(dirty []*sourceObject) []*sourceObject {
	var writes, deletes []*sourceObject
	for _, o := range dirty {
		switch {
		case o.good == nil && o.stored != nil:
			deletes = append(deletes, o)
		case o.good == nil:
			o.refused = nil // nothing is to be written any more
		case o.stored != nil && equal(&o.kind.schema, o.stored, o.good):
			o.good, o.refused = o.stored, nil
		default:
			writes = append(writes, o)
		}
	}
	byKey := func(a, b *sourceObject) int { return a.key.Compare(b.key) }
	slices.SortFunc(writes, byKey)
	slices.SortFunc(deletes, byKey)
	return append(writes, deletes...)
}

// equal reports whether two states of one object are equal.
func equal(schema *configstore.Schema, a, b *configstore.Config) bool {
	if a == b {
		return true
	}
	if !schema.EqualSpecs(a.Spec, b.Spec) {
		return false
	}
	rest, other := *a, *b
	rest.Spec, other.Spec = nil, nil
	return rest.Equal(other)
}

// conclude notes the outcome of a write.
func (o *sourceObject) conclude(store configstore.ConfigStore, err error) {
	had := o.stored != nil
	o.refused = nil
	switch {
	case errors.Is(err, ErrNotOwned):
		o.stored = nil // it is not this source's, if it ever was
		o.refused = &Error{TypeURL: o.kind.typeURL, Object: o.key, Err: err}
	case err != nil:
		o.refused = &Error{TypeURL: o.kind.typeURL, Object: o.key, Kept: had, Err: err}
	case o.good == nil:
		o.stored = nil
	default:
		o.stored, o.created = o.good, time.Time{}
		// As the store says: it may keep times in seconds.
		if stored := store.Get(o.key.Kind, o.key.Name, o.key.Namespace); stored != nil {
			o.created = stored.CreationTimestamp
		}
	}
	if has := o.stored != nil; has != had {
		if has {
			o.kind.written++
		} else {
			o.kind.written--
		}
	}
}

// attempts is how often a write is tried again because another writer has written to
// the same objects in between.
const attempts = 10

// commit writes, and returns the outcome of each write. One that is refused, or at which
// the store panics, does not keep back the others; those that were refused before are not
// tried together with the others.
func (s *Source) commit(writes []*sourceObject) []error {
	errs := make([]error, len(writes))
	batcher, ok := configstore.As[configstore.BatchWriter](s.store)
	batched := false
	if ok {
		// If it panics, it is found out which of the writes does.
		_ = guard.Call(func() { batched = s.commitBatch(batcher, writes, errs) })
	}
	for i, o := range writes {
		if !batched || o.refused != nil {
			if p := guard.Call(func() { errs[i] = s.commitOne(o) }); p != nil {
				errs[i] = p
			}
		}
	}
	return errs
}

// commitBatch writes all at once but what was refused before, and reports whether that
// went well. Objects that cannot be written are left out; their errors are in errs.
func (s *Source) commitBatch(batcher configstore.BatchWriter, writes []*sourceObject, errs []error) bool {
	for try := 1; ; try++ {
		batch := make([]configstore.Mutation, 0, len(writes))
		for i, o := range writes {
			if o.refused != nil {
				continue
			}
			m, err := s.mutation(o)
			if errs[i] = err; err == nil && m.Op != 0 {
				batch = append(batch, m)
			}
		}
		if len(batch) == 0 {
			return true
		}
		if _, err := batcher.Apply(batch...); err == nil || !raced(err) || try == attempts {
			return err == nil
		}
	}
}

func (s *Source) commitOne(o *sourceObject) error {
	for try := 1; ; try++ {
		m, err := s.mutation(o)
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
		if !raced(err) || try == attempts {
			return err //nolint:wrapcheck // names the object
		}
	}
}

// raced reports whether a write has failed as another writer was faster.
func raced(err error) bool {
	return errors.Is(err, configstore.ErrConflict) || errors.Is(err, configstore.ErrNotFound) ||
		errors.Is(err, configstore.ErrAlreadyExists)
}

// mutation returns how to write to the object that the store holds. The zero mutation
// means that nothing is to be done.
func (s *Source) mutation(o *sourceObject) (configstore.Mutation, error) {
	held := s.store.Get(o.key.Kind, o.key.Name, o.key.Namespace)
	foreign := held != nil && (o.stored == nil || !o.created.IsZero() && !o.created.Equal(held.CreationTimestamp))
	switch {
	case o.good == nil && (held == nil || foreign):
		// Another writer has deleted it, and perhaps created another one.
		return configstore.Mutation{}, nil
	case o.good == nil:
		return configstore.Mutation{Op: configstore.OpDelete, Config: *held}, nil
	case held == nil:
		return configstore.Mutation{Op: configstore.OpCreate, Config: *o.good, Checked: o.checked}, nil
	case foreign:
		return configstore.Mutation{}, fmt.Errorf("write: %w", ErrNotOwned)
	}
	config := *o.good
	config.ResourceVersion = held.ResourceVersion
	config.Status = held.Status // which does not travel: it is that of who writes it
	return configstore.Mutation{Op: configstore.OpUpdate, Config: config, Checked: o.checked}, nil
}
