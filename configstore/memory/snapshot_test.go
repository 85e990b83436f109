// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func TestSnapshotDoesNotChange(t *testing.T) {
	// The lists of a snapshot come from the store's own or from its own objects:
	// both ways, in each order of events.
	for _, listed := range []bool{false, true} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("listed=%v,before=%v", listed, before), func(t *testing.T) { testSnapshot(t, listed, before) })
		}
	}
}

func testSnapshot(t *testing.T, listed, before bool) {
	t.Helper()
	s := newStore()
	for _, ns := range []string{"a", "b", "gone"} {
		create(t, s, object(widget(), ns, "1", "old"))
		create(t, s, object(gadget(), ns, "1", "old"))
	}
	touch := func() {
		for _, ns := range []string{"", "a", "b", "gone", "new"} {
			s.List(widget(), ns)
		}
	}
	if listed {
		touch()
	}
	snap := s.Snapshot()
	check := func() {
		t.Helper()
		for ns, want := range map[string]string{"": "a/1 b/1 gone/1", "a": "a/1", "gone": "gone/1", "new": ""} {
			got := snap.List(widget(), ns)
			if names(got) != want || len(got) > 0 && value(got[0]) != "old" || want == "" && got != nil {
				t.Errorf("List(%q) = %s, want %s", ns, names(got), want)
			}
		}
		if value(snap.Get(widget(), "1", "gone")) != "old" || snap.Get(widget(), "1", "new") != nil || snap.Revision() != 6 {
			t.Error("Get changed")
		}
	}
	if before {
		check()
	}
	update(t, s, object(widget(), "a", "1", "new"))
	create(t, s, object(widget(), "new", "1", "new"))
	for range 2 {
		if err := s.Delete(widget(), "1", "gone", nil); err != nil {
			t.Fatal(err)
		}
		check()
		create(t, s, object(widget(), "gone", "1", "new"))
		check()
		touch()
		check()
	}
	if got := names(snap.List(gadget(), "")); got != "a/1 b/1 gone/1" {
		t.Errorf("All of another kind = %s", got)
	}
	if got := names(s.Snapshot().List(widget(), "")); got != "a/1 b/1 gone/1 new/1" {
		t.Errorf("a new snapshot has %s", got)
	}
	if snap.Get(configstore.GroupVersionKind{}, "1", "a") != nil || snap.List(configstore.GroupVersionKind{}, "a") != nil {
		t.Error("an unknown kind has objects")
	}
	if len(snap.Schemas().All()) != 3 {
		t.Error("the snapshot has other kinds")
	}
}

func TestSnapshotUnchangedIsTheSame(t *testing.T) {
	s := newStore()
	fill(t, s, 10)
	snap := s.Snapshot()
	list := snap.List(widget(), "")
	if s.Snapshot() != snap || &s.List(widget(), "")[0] != &list[0] {
		t.Error("without a change there is a new snapshot or list")
	}
	fill(t, s, 1)
	if s.Snapshot() == snap {
		t.Error("the snapshot is old")
	}
}

// Kinds agree with each other in a snapshot, and reads of one object in the store
// never go back, while batches change both.
func TestSnapshotIsConsistentAcrossKinds(t *testing.T) {
	s := memory.Make(testSchemas())
	create(t, s, object(widget(), "a", "x", "0"))
	create(t, s, object(gadget(), "a", "x", "0"))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				snap := s.Snapshot()
				w, g := value(snap.Get(widget(), "x", "a")), value(snap.List(gadget(), "a")[0])
				if w != g || value(snap.List(widget(), "")[0]) != w {
					t.Errorf("widget %s with gadget %s", w, g)
					return
				}
				// Both were written at once: a reader of one new reads the other new.
				first := s.Get(widget(), "x", "a")
				second := s.Get(gadget(), "x", "a")
				if len(value(second)) < len(value(first)) {
					t.Errorf("gadget %s after widget %s", value(second), value(first))
					return
				}
			}
		})
	}
	text := ""
	for range 300 {
		text += "i"
		_, err := s.Apply(
			mutation(configstore.OpUpdate, object(gadget(), "a", "x", text)),
			mutation(configstore.OpUpdate, object(widget(), "a", "x", text)),
		)
		if err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
