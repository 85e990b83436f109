// SPDX-License-Identifier: Apache-2.0

package cow_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/cow"
)

// TestCompare compares sequences with the difference of two maps.
func TestCompare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type element struct{ key, value int }
	byKey := func(a, b *element) int { return cmp.Compare(a.key, b.key) }
	same := func(a, b *element) bool { return a == b }
	for range 200 {
		var list []*element
		for i := range random.IntN(1000) {
			if random.IntN(3) > 0 {
				list = append(list, &element{i, 0})
			}
		}
		before := cow.FromSlice(list)
		after := before
		for range random.IntN(30) {
			e := &element{random.IntN(1100), 1}
			if old, ok := after.Find(byKey, e); ok {
				after, _ = after.Delete(byKey, old, same)
				if random.IntN(2) == 0 {
					continue
				}
			}
			after = after.Insert(byKey, e)
		}
		var want []string
		for i := range 1100 {
			x, _ := before.Find(byKey, &element{key: i})
			y, _ := after.Find(byKey, &element{key: i})
			if x != y {
				want = append(want, fmt.Sprint(i, x, y))
			}
		}
		var got []string
		cow.Compare(before, after, byKey, func(x, y *element) {
			if x != nil {
				got = append(got, fmt.Sprint(x.key, x, y))
			} else {
				got = append(got, fmt.Sprint(y.key, x, y))
			}
		})
		if !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
}
