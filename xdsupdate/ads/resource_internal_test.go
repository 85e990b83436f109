// SPDX-License-Identifier: Apache-2.0

package ads

import "testing"

// TestEqualStates: of states that turn out equal one after the other, each knows the
// first, which clients have, and holds on to no other.
func TestEqualStates(t *testing.T) {
	state := func(content string, former *resource) *resource {
		r := &resource{name: "a", bytes: func() []byte { return []byte(content) }, fallback: former}
		r.exists()
		return r
	}
	first := state("one", nil)
	last := first
	for range 5 {
		last = state("one", last.lastGood())
		if last.equal != first || last.lastGood() != first || last.fallback != nil {
			t.Fatalf("an equal state has %p, and falls back to %p, want %p and nil", last.equal, last.fallback, first)
		}
	}
	if other := state("two", last.lastGood()); other.equal != nil || other.lastGood() != other || other.fallback != nil {
		t.Error("another state is taken for an equal one")
	}
}
