// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSetsOfTopics compares unions, differences and intersections of sorted topics with those of
// maps, for lists of all sizes.
func TestSetsOfTopics(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]*Topic[int], 400)
	for i := range all {
		all[i] = &Topic[int]{Name: fmt.Sprintf("%03d", i), hash: uint64(i)}
	}
	some := func() (list []*Topic[int], has map[*Topic[int]]bool) {
		has = make(map[*Topic[int]]bool)
		every := []int{1, 2, 40, 400}[random.IntN(4)]
		for _, p := range all[:random.IntN(len(all)+1)] {
			if random.IntN(every) == 0 {
				list, has[p] = append(list, p), true
			}
		}
		return list, has
	}
	for range 2_000 {
		a, inA := some()
		b, inB := some()
		before := [][]*Topic[int]{slices.Clone(a), slices.Clone(b)}
		for what, tt := range map[string]struct {
			got  []*Topic[int]
			want func(p *Topic[int]) bool
		}{
			"union":        {Union(a, b), func(p *Topic[int]) bool { return inA[p] || inB[p] }},
			"without":      {Without(a, b), func(p *Topic[int]) bool { return inA[p] && !inB[p] }},
			"intersection": {Intersection(a, b), func(p *Topic[int]) bool { return inA[p] && inB[p] }},
		} {
			var want []*Topic[int]
			for _, p := range all {
				if tt.want(p) {
					want = append(want, p)
				}
			}
			if !slices.Equal(tt.got, want) {
				t.Fatalf("%s of %q and %q is %q", what, Names(a), Names(b), Names(tt.got))
			}
		}
		if all := Without(a, b); len(a) > 0 && len(Intersection(a, b)) == 0 && &all[0] != &a[0] {
			t.Fatalf("%q without %q is a copy", Names(a), Names(b))
		}
		if !slices.Equal(a, before[0]) || !slices.Equal(b, before[1]) {
			t.Fatal("an argument was modified")
		}
	}
}

// TestFewNamesOfMany: the cost of adding or removing one name of a long list does not grow with the
// list, except for copying it.
func TestFewNamesOfMany(t *testing.T) {
	const n = 100_000
	list := make([]*Topic[int], n)
	for i := range list {
		list[i] = &Topic[int]{Name: fmt.Sprintf("%06d", i)}
	}
	for what, few := range map[string]*Topic[int]{"first": list[0], "last": list[n-1], "middle": list[n/2]} {
		for name, f := range map[string]func(){
			"union":        func() { Union(list, []*Topic[int]{few}) },
			"without":      func() { Without(list, []*Topic[int]{few}) },
			"intersection": func() { Intersection(list, []*Topic[int]{few}) },
		} {
			if got := testing.AllocsPerRun(10, f); got > 3 {
				t.Errorf("%s, %s: %v allocations", name, what, got)
			}
		}
	}
}
