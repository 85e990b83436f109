// SPDX-License-Identifier: Apache-2.0

// Package commit writes the objects of a source to the store that it fills. The store may have
// other writers.
package commit

import (
	"errors"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// attempts is how often a write is tried again because another writer has written to
// the same object in between.
const attempts = 10

// Dated returns a config with a creation time. That of one without is the same in every process,
// before all others: objects of sources that know no times are in the order of their names.
func Dated(c configstore.Config) configstore.Config {
	if c.CreationTimestamp.IsZero() {
		c.CreationTimestamp = time.Unix(0, 0).UTC()
	}
	return c
}

// All makes the writes and notes their outcomes. Additions and updates come before deletions, so that
// readers see a replacement before the removal. Writes that were not rejected before are one batch, if
// the store takes batches. A write that is rejected, or that makes the store panic, does not block the
// others.
func All(store configstore.ConfigStore, writes []*Write) {
	writes = slices.SortedFunc(slices.Values(writes), (*Write).compare)
	batched := false
	if batcher, ok := configstore.As[configstore.BatchWriter](store); ok {
		// If it panics, it is found out which of the writes does.
		_ = guard.Call(func() { batched = batch(store, batcher, writes) })
	}
	for _, w := range writes {
		if !batched || w.Again {
			if p := guard.Call(func() { w.Err = one(store, w) }); p != nil {
				w.Err = p
			}
		}
		w.settle(store)
	}
}

// batch makes all writes at once except those rejected before, and reports whether it succeeded.
// Impossible writes are left out.
func batch(store configstore.ConfigStore, batcher configstore.BatchWriter, writes []*Write) bool {
	for try := 1; ; try++ {
		mutations := make([]configstore.Mutation, 0, len(writes))
		for _, w := range writes {
			if w.Again {
				continue
			}
			m, err := w.mutation(store)
			if w.Err = err; err == nil && m.Op != 0 {
				mutations = append(mutations, m)
			}
		}
		if len(mutations) == 0 {
			return true
		}
		if _, err := batcher.Apply(mutations...); err == nil || !raced(err) || try == attempts {
			return err == nil
		}
	}
}

func one(store configstore.ConfigStore, w *Write) error {
	for try := 1; ; try++ {
		m, err := w.mutation(store)
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
