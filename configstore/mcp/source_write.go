// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore/internal/commit"
)

// write brings the store to the good states of objects, and retries the objects that it has
// rejected before.
func (s *Source) write(dirty []*sourceObject) {
	dirty = s.withRefused(dirty)
	objects := slices.DeleteFunc(slices.Clone(dirty), (*sourceObject).upToDate)
	writes := make([]*commit.Write, len(objects))
	for i, o := range objects {
		writes[i] = &commit.Write{Key: o.key, Want: o.good, Checked: o.checked, Owned: o.owned, Again: o.refused != nil}
	}
	commit.All(s.store, writes)
	for i, o := range objects {
		o.conclude(writes[i])
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

// upToDate reports whether the store has the good state of an object, so that there is nothing to
// write.
func (o *sourceObject) upToDate() bool {
	stored := o.owned.Config
	if o.good != nil && stored != nil && commit.Equal(&o.kind.schema, stored, o.good) {
		o.good = stored
	}
	if o.good != stored {
		return false
	}
	o.refused = nil
	return true
}

// conclude notes the outcome of a write.
func (o *sourceObject) conclude(w *commit.Write) {
	had, has := o.owned.Config != nil, w.Owned.Config != nil
	switch {
	case has && !had:
		o.kind.written++
	case had && !has:
		o.kind.written--
	}
	o.owned, o.refused = w.Owned, nil
	if w.Err != nil {
		o.refused = &Error{TypeURL: o.kind.typeURL, Object: o.key, Kept: has, Err: w.Err}
	}
}
