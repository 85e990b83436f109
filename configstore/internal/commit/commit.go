// SPDX-License-Identifier: Apache-2.0

// Package commit writes what a source has found to the store that it fills, which may have
// other writers.
package commit

import (
	"errors"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// attempts is how often a write is tried again because another writer has written to
// the same object in between.
const attempts = 10

// Write is one change that a store needs.
type Write struct {
	// Mutation returns how to write to the object that the store holds at that moment. It is
	// called with each attempt. The zero mutation means that nothing is to be done.
	Mutation func() (configstore.Mutation, error)
	// Again means that the store has refused the object before.
	Again bool
}

// Dated returns a config with a creation time. That of one without is the same in every process,
// before all others: objects of sources that know no times are in the order of their names.
func Dated(c configstore.Config) configstore.Config {
	if c.CreationTimestamp.IsZero() {
		c.CreationTimestamp = time.Unix(0, 0).UTC()
	}
	return c
}

// All writes, in order, and returns the outcome of each write. All that were not refused before
// are one batch, if the store takes batches. One write that is refused, or at which the store
// panics, does not keep back the others.
func All(store configstore.ConfigStore, writes []Write) []error {
	errs := make([]error, len(writes))
	batched := false
	if batcher, ok := configstore.As[configstore.BatchWriter](store); ok {
		// If it panics, it is found out which of the writes does.
		_ = guard.Call(func() { batched = batch(batcher, writes, errs) })
	}
	for i, w := range writes {
		if !batched || w.Again {
			if p := guard.Call(func() { errs[i] = one(store, w) }); p != nil {
				errs[i] = p
			}
		}
	}
	return errs
}

// batch writes all at once but what was refused before, and reports whether that went well.
// What cannot be written is left out; its errors are in errs.
func batch(store configstore.BatchWriter, writes []Write, errs []error) bool {
	for try := 1; ; try++ {
		mutations := make([]configstore.Mutation, 0, len(writes))
		for i, w := range writes {
			if w.Again {
				continue
			}
			m, err := w.Mutation()
			if errs[i] = err; err == nil && m.Op != 0 {
				mutations = append(mutations, m)
			}
		}
		if len(mutations) == 0 {
			return true
		}
		if _, err := store.Apply(mutations...); err == nil || !raced(err) || try == attempts {
			return err == nil
		}
	}
}

func one(store configstore.ConfigStore, w Write) error {
	for try := 1; ; try++ {
		m, err := w.Mutation()
		if err != nil {
			return err
		}
		switch c := m.Config; m.Op {
		case configstore.OpCreate:
			_, err = store.Create(c)
		case configstore.OpUpdate:
			_, err = store.Update(c)
		case configstore.OpDelete:
			err = store.Delete(c.GroupVersionKind, c.Name, c.Namespace, &c.ResourceVersion)
		default:
			return nil
		}
		if !raced(err) || try == attempts {
			return err
		}
	}
}

// raced reports whether a write has failed as another writer was faster.
func raced(err error) bool {
	return errors.Is(err, configstore.ErrConflict) || errors.Is(err, configstore.ErrNotFound) ||
		errors.Is(err, configstore.ErrAlreadyExists)
}

// Equal reports whether two states of one object, whose kind has a schema, are equal.
func Equal(schema *configstore.Schema, a, b *configstore.Config) bool {
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
