// SPDX-License-Identifier: Apache-2.0

package resource

import "testing"

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
