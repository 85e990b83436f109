// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"runtime"
	"slices"
	"testing"
)

func TestUnchangedListsAreHandedOutAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 3)
		s.fill("b", 100)
		for _, ns := range []string{"a", "b", ""} {
			first := s.lists.List(ns)
			if again := s.lists.List(ns); again != first {
				t.Errorf("List(%q) was made again", ns)
			}
			if n := testing.AllocsPerRun(10, func() { s.lists.List(ns) }); n != 0 {
				t.Errorf("List(%q) allocates %v times", ns, n)
			}
		}
		b := s.lists.List("b")
		s.fill("a", 1)
		if s.lists.List("b") != b {
			t.Error("a change in one namespace made the list of another one anew")
		}
	})
}

// An append by a caller cannot write to the lists of others.
func TestListsHaveNoRoom(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 100)
		s.fill("b", 2)
		s.set(Key{"a", "o000001"}, false)
		for _, ns := range []string{"", "a", "b"} {
			if list := s.list(ns); len(list) != cap(list) {
				t.Errorf("List(%q) has %d items and room for %d", ns, len(list), cap(list))
			}
		}
		if part := InNamespace(s.list(""), "a"); len(part) != 99 || cap(part) != 99 {
			t.Errorf("the part of a namespace has %d items and room for %d", len(part), cap(part))
		}
		if part := InNamespace(s.list(""), "c"); part != nil {
			t.Errorf("the part of no namespace is %v, want nil", part)
		}
	})
}

// The revision of a list shows whether it includes later changes.
func TestRevisions(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 100)
		s.fill("b", 1)
		for ns, want := range map[string]uint64{"a": 100, "b": 101, "": 101} {
			if got := s.lists.List(ns).Revision; got != want {
				t.Errorf("the list of %q has the revision %d, want %d", ns, got, want)
			}
		}
	})
}

// The list of a namespace that is a part of the list of all may have changes that
// came after it was begun: its revision covers them.
func TestRevisionOfAPart(t *testing.T) {
	s := newStore(true)
	s.fill("a", 200)
	a, _ := s.lists.namespaces.Get("a")
	s.lists.all.making.Lock()
	listed := make(chan *Version)
	go func() { listed <- s.lists.List("a") }()
	for begun := false; !begun; runtime.Gosched() {
		s.mu.Lock()
		begun = a.state == remaking
		s.mu.Unlock()
	}
	s.fill("a", 1)
	s.lists.all.making.Unlock()
	v := <-listed
	if want := s.want("a"); !slices.Equal(v.Items, want) || v.Revision != 201 {
		t.Errorf("the list has the revision %d and %s, want 201 and %s", v.Revision, text(v.Items), text(want))
	}
}
