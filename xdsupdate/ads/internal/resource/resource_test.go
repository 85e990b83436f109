// SPDX-License-Identifier: Apache-2.0

package resource

import "testing"

// TestSnapshotVersions: a snapshot after edits has the version of a new one with the same resources.
func TestSnapshotVersions(t *testing.T) {
	state := func(name string, hash uint64) *State { return &State{Name: name, Hash: hash} }
	a, b, c, marker := state("a", 1), state("b", 2), state("c", 3), NewMarker("", "d", Unknown)
	first := NewSnapshot([]*State{a, b, c})
	for what, tt := range map[string]struct {
		got  *Snapshot
		want []*State
	}{
		"removed":          {first.Without([]string{"b", "d"}), []*State{a, c}},
		"replaced":         {first.With([]Edit{{"b", state("b", 4)}}), []*State{a, state("b", 4), c}},
		"added":            {first.With([]Edit{{"d", state("d", 4)}}), []*State{a, b, c, state("d", 4)}},
		"exchanged":        {first.With([]Edit{{"b", state("b", 3)}, {"c", state("c", 2)}}), []*State{a, state("b", 3), state("c", 2)}},
		"marked":           {first.With([]Edit{{"d", marker}}), []*State{a, b, c}},
		"removed and back": {first.Without([]string{"b"}).With([]Edit{{"b", b}}), []*State{a, b, c}},
	} {
		if want := NewSnapshot(tt.want).Sum; tt.got.Sum != want {
			t.Errorf("%s: version %x, want %x", what, tt.got.Sum, want)
		}
	}
	if first.With([]Edit{{"b", state("b", 3)}, {"c", state("c", 2)}}).Sum == first.Sum {
		t.Error("the version does not change when two resources exchange their contents")
	}
}

// TestEqualStates: of states that turn out equal one after the other, each knows the
// first, which clients have, and holds on to no other.
func TestEqualStates(t *testing.T) {
	state := func(content string, former *State) *State {
		r := &State{Name: "a", Bytes: func() []byte { return []byte(content) }, Fallback: former}
		r.Exists()
		return r
	}
	first := state("one", nil)
	last := first
	for range 5 {
		last = state("one", last.LastGood())
		if last.equal != first || last.LastGood() != first || last.Fallback != nil {
			t.Fatalf("an equal state has %p, and falls back to %p, want %p and nil", last.equal, last.Fallback, first)
		}
	}
	if other := state("two", last.LastGood()); other.equal != nil || other.LastGood() != other || other.Fallback != nil {
		t.Error("another state is taken for an equal one")
	}
}
