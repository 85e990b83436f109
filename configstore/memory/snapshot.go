// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// Snapshot is the state of a store at one revision, consistent across kinds. It never changes.
// Reading it takes no lock, except for the first List of objects that have changed meanwhile. It
// keeps the memory of its objects alive.
type Snapshot struct {
	store    *Store
	revision uint64
	views    []*view // in the order of store.kinds
}

var _ configstore.Reader = (*Snapshot)(nil)

// Snapshot returns the current state. Its cost does not depend on the number of objects; without a
// change since the last call, it is free.
func (s *Store) Snapshot() *Snapshot {
	if snap := s.snapshot.Load(); snap != nil && snap.revision == s.committed.Load() {
		return snap
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotLocked()
}

func (s *Store) snapshotLocked() *Snapshot {
	if snap := s.snapshot.Load(); snap != nil {
		return snap
	}
	snap := &Snapshot{store: s, revision: s.committed.Load(), views: make([]*view, len(s.kinds))}
	for i, k := range s.kinds {
		snap.views[i] = k.freeze()
	}
	s.snapshot.Store(snap)
	return snap
}

// Revision returns the revision of the last change that the snapshot has.
func (s *Snapshot) Revision() uint64 { return s.revision }

// Schemas returns the kinds of the store.
func (s *Snapshot) Schemas() configstore.Schemas { return s.store.schemas }

// Get is ConfigStore.Get at the snapshot's revision.
func (s *Snapshot) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	i, ok := s.store.schemas.Position(&kind)
	if !ok {
		return nil
	}
	e := s.views[i].objects.Entry(key{Namespace: namespace, Name: name})
	if e == nil {
		return nil
	}
	e.Value.verify()
	return &e.Value.Config
}

// List is ConfigStore.List at the snapshot's revision.
func (s *Snapshot) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	i, ok := s.store.schemas.Position(&kind)
	if !ok {
		return nil
	}
	k := s.store.kinds[i]
	items := s.list(k, s.views[i], namespace)
	s.store.verifyList(k, items)
	return items
}

// revisionOf returns the store's revision that stored an object of the snapshot.
func (s *Snapshot) revisionOf(c *configstore.Config) uint64 {
	if !s.store.opts.Mirror {
		revision, _ := strconv.ParseUint(c.ResourceVersion, 10, 64) // the store's own
		return revision
	}
	if i, ok := s.store.schemas.Position(&c.GroupVersionKind); ok {
		if e := s.views[i].objects.Entry(key{Namespace: c.Namespace, Name: c.Name}); e != nil {
			return e.Value.revision
		}
	}
	return 0
}

// list prefers the list that the store has, or makes anyway for the next reader,
// if it is that of the snapshot.
func (s *Snapshot) list(k *kind, v *view, namespace string) []*configstore.Config {
	all := namespace == configstore.NamespaceAll
	if !all || v.list.Load() == nil {
		now := k.lists.List(namespace)
		switch {
		case now != nil && now.Revision <= s.revision:
			return now.Items
		case now == nil && s.revision == s.store.committed.Load():
			return nil
		}
	}
	if all {
		return v.items()
	}
	return listing.InNamespace(v.items(), namespace)
}
