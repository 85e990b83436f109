// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// TestFromEntries compares maps that are made at once with ones that are made by Set:
// the trees have to be the same.
func TestFromEntries(t *testing.T) {
	t.Parallel()
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range histories.Seeds(t, 60) {
				r := rand.New(rand.NewPCG(seed, 3))
				start := Map[int, int]{}
				start.hash.test = hash
				want, model := start, map[int]int{}
				var entries []*Entry[int, int]
				for range r.IntN(300) {
					e := &Entry[int, int]{Key: r.IntN(1 << (4 * (1 + seed%6))), Value: r.Int()}
					entries = append(entries, e)
					want, model[e.Key] = want.Set(e.Key, e.Value), e.Value
				}
				got := build(start.hash, entries)
				if all := maps.Collect(got.All()); got.Len() != len(model) || !maps.Equal(all, model) {
					t.Fatalf("%d entries: %v, want %v", got.Len(), all, model)
				}
				checkShape(t, got.root, 0)
				checkSameShape(t, got.root, want.root)
				Changes(want, got, func(a, b *Entry[int, int]) bool {
					if a == nil || b == nil || *a != *b {
						t.Errorf("Changes yields %v, %v", a, b)
					}
					return true
				})
				if next := got.Set(-1, 1).Delete(-1); next.Len() != got.Len() {
					t.Errorf("%d entries after a change and its reverse, want %d", next.Len(), got.Len())
				}
			}
		})
	}
	if m := FromEntries([]*Entry[string, int]{{"a", 1}, {"b", 2}, {"a", 3}}); m.Len() != 2 || m.Entry("a").Value != 3 {
		t.Errorf("%d entries, a is %v", m.Len(), m.Entry("a"))
	}
	if m := FromEntries[string, int](nil).Set("a", 1); m.Len() != 1 {
		t.Error("an empty map cannot be added to")
	}
}

func checkSameShape(t *testing.T, a, b *node) {
	t.Helper()
	switch {
	case a == nil && b == nil:
		return
	case a == nil || b == nil || a.entryMap != b.entryMap || a.childMap != b.childMap || len(a.slots) != len(b.slots):
		t.Fatal("the trees are different")
	}
	i := 0
	for used := a.entryMap | a.childMap; used != 0; used &= used - 1 {
		if a.childMap&used&-used != 0 {
			checkSameShape(t, a.child(i), b.child(i))
		}
		i++
	}
}
