// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// key is an object's key within its kind.
type key = listing.Key

// object is one version of an object, or a tombstone. All fields but prev are fixed before it is
// put into a map. The fields that every Get reads come first, in the cache line of the key.
type object struct {
	// revision is the store's revision since which this version holds.
	revision uint64
	// prev is the version before, while this one is in the maps but its
	// revision is not committed yet. Otherwise nil.
	prev atomic.Pointer[object]
	// gone is set if the version is the absence of the object.
	gone bool
	// original is a copy of the object, if mutations are to be detected; else nil.
	original *configstore.Config
	configstore.Config
}

// entry is an object as maps hold it: in one allocation with its key.
type entry = pmap.Entry[key, object]

// objects is an immutable snapshot of the objects of a kind.
type objects struct{ pmap.Map[key, object] }

// Get implements listing.Objects.
func (m objects) Get(at key) *configstore.Config { return configOf(m.Entry(at)) }

// Each implements listing.Objects.
func (m objects) Each(yield func(*configstore.Config) bool) {
	m.Entries(func(e *entry) bool { return yield(&e.Value.Config) })
}

// configOf returns the object of an entry, which may be nil, while no commit is in
// progress: every entry is then an object that exists.
func configOf(e *entry) *configstore.Config {
	if e == nil {
		return nil
	}
	return &e.Value.Config
}

// exists reports whether this version is an object rather than its absence.
func (o *object) exists() bool { return !o.gone }

// at returns the version of the object at a committed revision: o, or its predecessor.
func (o *object) at(revision uint64) *object {
	if o.revision > revision {
		// Not committed when revision was read. If prev is nil by now it has been
		// since, and the read counts as one at that moment.
		if prev := o.prev.Load(); prev != nil {
			return prev
		}
	}
	return o
}
