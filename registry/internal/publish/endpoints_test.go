// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

func endpoint(address string, health registry.HealthStatus) *registry.Endpoint {
	return &registry.Endpoint{Addresses: []string{address}, EndpointPort: 80, HealthStatus: health}
}

// TestEdit: whatever is removed and added, the list has exactly that, in order, and the
// changes lead to it from the list before. Equal endpoints may be in it many times.
func TestEdit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var list publish.Endpoints
	for round := range 2000 {
		have := list.Slice()
		random.Shuffle(len(have), func(i, j int) { have[i], have[j] = have[j], have[i] })
		removed := have[:random.IntN(len(have)/(1+random.IntN(4))+1)]
		kept := slices.Clone(have[len(removed):])
		var added []*registry.Endpoint
		for range random.IntN(1 + random.IntN(12)) {
			added = append(added, endpoint(fmt.Sprintf("10.0.0.%d", random.IntN(20)), registry.HealthStatus(1+random.IntN(2))))
		}
		want := append(kept, added...)
		slices.SortStableFunc(want, registry.CompareEndpoints)
		next, changes := publish.Edit(list, list.Edit(len(removed)+len(added)), removed, added)
		got := next.Slice()
		if !slices.IsSortedFunc(got, registry.CompareEndpoints) || !sameSet(got, want) {
			t.Fatalf("round %d: the list is not what was asked for", round)
		}
		after := list.Slice()
		for _, c := range changes {
			if c.Old != nil {
				i := slices.Index(after, c.Old)
				if i < 0 {
					t.Fatalf("round %d: a change of what is not there", round)
				}
				after = slices.Delete(after, i, i+1)
			}
			if c.New != nil {
				after = append(after, c.New)
			}
			if c.Old != nil && c.New != nil && registry.CompareEndpointKeys(c.Old, c.New) != 0 {
				t.Fatalf("round %d: a pair of different keys", round)
			}
		}
		if !sameSet(after, want) {
			t.Fatalf("round %d: the changes lead elsewhere", round)
		}
		list = next
	}
}

// sameSet reports whether two lists have the same objects, in whatever order.
func sameSet(a, b []*registry.Endpoint) bool {
	count := map[*registry.Endpoint]int{}
	for _, e := range a {
		count[e]++
	}
	for _, e := range b {
		count[e]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestEditPairs: an endpoint that takes the place of one of its key is one change with
// it; what is to be removed and is not there harms nothing.
func TestEditPairs(t *testing.T) {
	t.Parallel()
	a, b, c := endpoint("10.0.0.1", registry.Healthy), endpoint("10.0.0.2", registry.Healthy), endpoint("10.0.0.3", registry.Healthy)
	ill := endpoint("10.0.0.2", registry.UnHealthy)
	for _, others := range []int{0, 100} { // made anew, and edited
		all := []*registry.Endpoint{a, b, c}
		for i := range others {
			all = append(all, endpoint(fmt.Sprintf("10.1.0.%d", i), registry.Healthy))
		}
		slices.SortFunc(all, registry.CompareEndpoints)
		list := cow.FromSlice(all)
		next, changes := publish.Edit(list, list.Edit(2), []*registry.Endpoint{c, b}, []*registry.Endpoint{ill})
		if len(changes) != 2 || changes[0].Old != b || changes[0].New != ill || changes[1].Old != c || changes[1].New != nil {
			t.Errorf("%d others: changes %v", others, changes)
		}
		if got := next.Slice(); got[0] != a || got[1] != ill || next.Len() != list.Len()-1 {
			t.Errorf("%d others: list %v", others, got)
		}
		stranger := endpoint("10.0.0.0", registry.Healthy)
		next, _ = publish.Edit(list, list.Edit(2), []*registry.Endpoint{stranger, a}, nil)
		if next.Len() != list.Len()-1 || next.Slice()[0] != b {
			t.Errorf("%d others: an endpoint that is not there keeps another one", others)
		}
	}
}
