// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

// A change during the making of a list is in the next one, and a capture taken meanwhile has its
// own state.
func TestChangesWhileAListIsMade(t *testing.T) {
	for name, tt := range map[string]struct {
		before, during func(s *store)
	}{
		"a lost list, few changes":   {func(s *store) { s.fill("a", 200) }, func(s *store) { s.fill("a", 3) }},
		"a lost list, many changes":  {func(s *store) { s.fill("a", 200) }, func(s *store) { s.fill("b", 2000) }},
		"many pending, few changes":  {func(s *store) { s.fill("a", 40) }, func(s *store) { s.set(Key{"a", "o000001"}, false) }},
		"many pending, the same key": {func(s *store) { s.fill("a", 40) }, func(s *store) { s.fill("a", 1) }},
		"many pending, duplicates": {func(s *store) { s.fill("a", 40) }, func(s *store) {
			for range 200 {
				s.fill("a", 1)
			}
		}},
		"many pending, all gone": {func(s *store) { s.fill("a", 40) }, func(s *store) {
			for k := range maps.Clone(s.objects) {
				s.set(k, false)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, ns := range []string{"a", "", "a", ""} {
				s := newStore(true)
				s.numbers = i > 1
				tt.before(s)
				want := s.want(ns)
				var capture Capture
				var objects contents
				called := false
				s.interrupt = func() {
					called = true
					tt.during(s)
					s.mu.Lock()
					capture, objects = s.lists.Capture(), maps.Clone(s.objects)
					s.mu.Unlock()
					s.validate(t)
				}
				if got := s.list(ns); !slices.Equal(got, want) && !slices.Equal(got, s.want(ns)) {
					t.Errorf("List(%q) = %s, want %s", ns, text(got), text(want))
				}
				if !called {
					t.Fatal("nothing changed meanwhile")
				}
				s.validate(t)
				s.expect(t, "a", "b", "")
				s.validate(t)
				if got := capture.List(objects); !slices.Equal(got, wanted(objects, "")) {
					t.Errorf("captured meanwhile: %s, want %s", text(got), text(wanted(objects, "")))
				}
			}
		})
	}
}

// Readers and writers at the same time: each list is sorted, and no reader goes
// back.
func TestConcurrentReaders(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 10)
		stop := make(chan struct{})
		var readers, writers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				var last uint64
				for {
					select {
					case <-stop:
						return
					default:
					}
					v := s.lists.List("")
					if v.Revision < last {
						t.Errorf("a list of revision %d came after one of %d", v.Revision, last)
					}
					last = v.Revision
					if !slices.IsSortedFunc(v.Items, func(a, b *configstore.Config) int { return KeyOf(a).Compare(KeyOf(b)) }) {
						t.Error("a list is not sorted")
					}
					s.lists.List("b")
				}
			})
		}
		for w := range 2 {
			writers.Go(func() {
				for i := range 1000 {
					s.set(Key{"ab"[w : w+1], "o" + strconv.Itoa(i*7919%150)}, i%3 > 0)
				}
			})
		}
		writers.Wait()
		close(stop)
		readers.Wait()
		s.validate(t)
		s.expect(t, "a", "b", "")
		s.validate(t)
	})
}
