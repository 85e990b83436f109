// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strconv"
)

// Validate checks the invariants of the package comment while no commit is in
// progress. Tests call it in the midst of everything else.
func (s *Store) Validate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	committed := s.committed.Load()
	for _, k := range s.kinds {
		if err := k.validate(committed); err != nil {
			return fmt.Errorf("%s: %w", k.gvk().Kind, err)
		}
	}
	if snap := s.snapshot.Load(); snap != nil && snap.revision != committed {
		return fmt.Errorf("the snapshot of revision %d is kept at %d", snap.revision, committed)
	}
	if p := &s.plan; len(p.changes) > 0 || len(p.versions) > 0 || len(p.byKey) > 0 {
		return fmt.Errorf("%d changes are planned while no write is in progress", len(p.changes))
	}
	return s.history.validate(committed)
}

func (k *kind) validate(committed uint64) error {
	var err error
	objects := 0
	k.objects.Snapshot().Entries(func(e *entry) bool {
		objects++
		switch o := &e.Value; {
		case !o.exists():
			err = fmt.Errorf("%s/%s is absent and kept", e.Key.Namespace, e.Key.Name)
		case o.prev.Load() != nil:
			err = fmt.Errorf("%s keeps the version before", o.Key().Object())
		case o.revision == 0 || o.revision > committed || o.ResourceVersion != strconv.FormatUint(o.revision, 10):
			err = fmt.Errorf("%s has the revision %d, version %q, at %d", o.Key().Object(), o.revision, o.ResourceVersion, committed)
		case e.Key != (key{Namespace: o.Namespace, Name: o.Name}) || o.GroupVersionKind != k.gvk():
			err = fmt.Errorf("%s is kept under %v", o.Key().Object(), e.Key)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if n := k.objects.Len(); n != objects {
		return fmt.Errorf("%d objects are counted, %d exist", n, objects)
	}
	return k.lists.Validate()
}

func (h *history) validate(committed uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != committed {
		return fmt.Errorf("the history ends at revision %d, the store is at %d", h.last, committed)
	}
	for r := h.last; r > h.last-uint64(len(h.ring)); r-- {
		if got := h.ring[(r-1)%uint64(h.limit)].Revision; got != r {
			return fmt.Errorf("the history has the revision %d where %d should be", got, r)
		}
	}
	return nil
}

// Queues returns how many controllers the store pushes changes to.
func (s *Store) Queues() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues)
}
