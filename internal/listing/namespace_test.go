// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"maps"
	"testing"
)

// A reader that has looked up a namespace that was emptied meanwhile, and filled again, finds it
// empty, and no new objects with the names of old ones.
func TestListOfADroppedNamespace(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 1)
		old, _ := s.lists.namespaces.Get("a")
		s.set(Key{"a", "o000000"}, false)
		s.fill("a", 2)
		if v := s.lists.refresh(old, "a"); len(v.Items) != 0 {
			t.Errorf("the old list has %s", text(v.Items))
		}
		s.expect(t, "a", "")
	})
}

// The same if the list was being made when the namespace lost its last object.
func TestNamespaceDroppedWhileItsListIsMade(t *testing.T) {
	s := newStore(true)
	s.fill("a", 40)
	old, _ := s.lists.namespaces.Get("a")
	s.interrupt = func() {
		for k := range maps.Clone(s.objects) {
			s.set(k, false)
		}
	}
	s.list("a")
	s.fill("a", 2)
	if v := s.lists.refresh(old, "a"); len(v.Items) != 0 {
		t.Errorf("the old list has %s", text(v.Items))
	}
	s.expect(t, "a", "")
}
