// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// write brings the store to the good states of objects, and retries the objects that it has
// rejected before.
func (s *Source) write(dirty []*sourceObject) {
	dirty = s.withRefused(dirty)
	objects := s.diff(dirty)
	writes := make([]commit.Write, len(objects))
	for i, o := range objects {
		writes[i] = commit.Write{Mutation: func() (configstore.Mutation, error) { return s.mutation(o) }, Again: o.refused != nil}
	}
	for i, err := range commit.All(s.store, writes) {
		objects[i].conclude(s.store, err)
	}
	for _, o := range dirty {
		o.checked = nil
		o.kind.note(o)
		o.kind.forget(o)
	}
	s.refused = slices.ContainsFunc(s.kinds, func(k *sourceKind) bool { return len(k.refused) > 0 })
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
		for _, o := range k.refused {
			if _, ok := known[o]; !ok {
				dirty = append(dirty, o)
			}
		}
	}
	return dirty
}

// diff returns the objects whose state in the store differs from the good state. Additions and
// updates come before deletions, so that readers see a replacement before the removal.
func (s *Source) diff(dirty []*sourceObject) []*sourceObject {
	var writes, deletes []*sourceObject
	for _, o := range dirty {
		switch {
		case o.good == nil && o.stored != nil:
			deletes = append(deletes, o)
		case o.good == nil:
			o.refused = nil // there is nothing left to write
		case o.stored != nil && commit.Equal(&o.kind.schema, o.stored, o.good):
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

// mutation returns the mutation that applies the object to the currently stored one. The zero
// mutation means that there is nothing to do.
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
