// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"testing"
)

// Remembered keys and emptied namespaces use no memory in the long run, and a small set of objects
// that keeps changing is not lost.
func TestPendingIsBounded(t *testing.T) {
	s := newStore(true)
	s.fill("stays", 10)
	s.list("")
	s.list("stays")
	for i := range 1000 {
		s.set(Key{fmt.Sprint("ns", i), "brief"}, true)
		s.set(Key{fmt.Sprint("ns", i), "brief"}, false)
		s.set(Key{"stays", fmt.Sprint("brief", i)}, true)
		s.set(Key{"stays", fmt.Sprint("brief", i)}, false)
	}
	if n := s.lists.namespaces.Len(); n != 1 {
		t.Errorf("%d namespaces are kept", n)
	}
	stays, _ := s.lists.namespaces.Get("stays")
	for name, l := range map[string]*list{"stays": stays, "all": &s.lists.all} {
		if n := len(l.pending); n > 100 {
			t.Errorf("%d keys are pending for %s", n, name)
		}
	}
	s.fill("stays", 200)
	s.list("")
	s.list("stays")
	for range 10 {
		s.fill("stays", 200)
	}
	if stays.state != kept || s.lists.all.state != kept {
		t.Errorf("lists of 200 objects that keep changing are lost: %v, %v", stays.state, s.lists.all.state)
	}
	s.validate(t)
}

// An object that keeps changing is remembered once if its store gives the revision
// before.
func TestAKeyIsPendingOnce(t *testing.T) {
	s := newStore(true)
	s.numbers = true
	s.fill("a", 10)
	for _, ns := range []string{"a", ""} {
		s.list(ns)
	}
	for range 20 {
		s.fill("a", 3)
	}
	a, _ := s.lists.namespaces.Get("a")
	if n, m := len(a.pending), len(s.lists.all.pending); n != 3 || m != 3 {
		t.Errorf("%d and %d keys are pending after 60 changes of 3 objects, want 3", n, m)
	}
	s.expect(t, "a", "")
}
