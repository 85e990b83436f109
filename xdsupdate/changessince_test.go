// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestChangesSince compares the difference of two states with that of the sets of their
// endpoints, for lists and deltas of two shards. Endpoints are replaced by new ones of
// the same key, too.
func TestChangesSince(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const host, namespace = registry.Hostname("a.example.com"), "shop"
	for round := range 50 {
		index := xdsupdate.NewEndpointIndex()
		shards := []xdsupdate.ShardKey{{Cluster: "a"}, {Cluster: "b"}}
		held := make([][]*registry.Endpoint, len(shards))
		before := index.Service(host, namespace)
		for range 20 {
			at := r.IntN(len(shards))
			e := &registry.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", r.IntN(200))}, EndpointPort: 80}
			switch list := held[at]; {
			case len(list) > 0 && r.IntN(3) == 0:
				i := r.IntN(len(list))
				index.UpdateEndpoints(shards[at], host, namespace, []xdsupdate.EndpointChange{{Old: list[i], New: nil}})
				held[at] = slices.Delete(list, i, i+1)
			case r.IntN(3) == 0:
				held[at] = slices.SortedFunc(slices.Values(append(slices.Clone(list), e)), registry.CompareEndpoints)
				index.UpdateServiceEndpoints(shards[at], host, namespace, slices.Clone(held[at]))
			default:
				if slices.ContainsFunc(list, func(o *registry.Endpoint) bool { return registry.CompareEndpoints(o, e) == 0 }) {
					continue
				}
				index.UpdateEndpoints(shards[at], host, namespace, []xdsupdate.EndpointChange{{New: e}})
				held[at] = append(held[at], e)
			}
			if r.IntN(2) == 0 {
				continue
			}
			after := index.Service(host, namespace)
			want := make(map[*registry.Endpoint]bool)
			for e := range before.All() {
				want[e] = true
			}
			for e := range after.All() {
				if want[e] {
					delete(want, e)
				} else {
					want[e] = true
				}
			}
			got := after.ChangesSince(before)
			for _, e := range got {
				delete(want, e)
			}
			if len(want) > 0 {
				t.Fatalf("round %d: %d changes were not found among %d", round, len(want), len(got))
			}
			before = after
		}
	}
	if got := (*xdsupdate.ServiceEndpoints)(nil).ChangesSince(nil); got != nil {
		t.Errorf("nothing has changes: %v", got)
	}
}
