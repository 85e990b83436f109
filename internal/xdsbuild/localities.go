// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"cmp"
	"maps"
	"math"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
)

// entry is an endpoint of a load assignment, or a gateway that replaces endpoints.
type entry struct {
	endpoint *registry.Endpoint // for a gateway, the first endpoint that it replaces
	lb       *endpointv3.LbEndpoint
	locality localityKey
	// rank determines the priority. Entries of equal rank have the same priority.
	rank   int
	weight uint64
}

// group is the entries of one locality and rank.
type group struct {
	locality localityKey
	rank     int
	entries  []entry
	// weight is the weight of the locality, 0 for the sum of the entries' weights.
	weight uint64
}

// localities groups sorted endpoints by priority and locality.
func (u *Upstream) localities(endpoints []*registry.Endpoint, names bool) []*endpointv3.LocalityLbEndpoints {
	entries := u.entries(endpoints, names)
	if u.Proxy == nil {
		return assemble(entries)
	}
	setting := u.locality()
	if setting.failover {
		ranker := newRanker(u.Proxy, setting)
		for i, m := range entries {
			entries[i].rank = ranker.rank(m.endpoint, m.locality)
		}
	}
	if !names {
		entries = u.throughGateways(entries)
	}
	boundRanks(entries)
	groups := groupEntries(entries)
	if len(setting.distribute) > 0 {
		groups = distribute(groups, setting.distribute, keyOfLocality(u.Proxy.Locality))
	}
	return assembleGroups(groups)
}

// entries returns one entry for each endpoint.
func (u *Upstream) entries(endpoints []*registry.Endpoint, names bool) []entry {
	out := make([]entry, len(endpoints))
	for i, e := range endpoints {
		tlsMode := e.Attributes().TLSMode
		if u.plaintext() || u.Plaintext != nil && u.Plaintext(e) {
			tlsMode = ""
		}
		out[i] = entry{
			endpoint: e, lb: lbEndpoint(e, names, tlsMode), locality: keyOfLocality(e.Attributes().Locality),
			weight: uint64(max(1, e.Attributes().LbWeight)),
		}
	}
	return out
}

// assemble groups entries by rank and locality.
func assemble(entries []entry) []*endpointv3.LocalityLbEndpoints {
	return assembleGroups(groupEntries(entries))
}

// groupEntries groups entries by rank and locality, sorted.
func groupEntries(entries []entry) []*group {
	type key struct {
		rank     int
		locality localityKey
	}
	byKey := make(map[key]*group)
	var out []*group
	for _, m := range entries {
		k := key{m.rank, m.locality}
		g := byKey[k]
		if g == nil {
			g = &group{locality: m.locality, rank: m.rank}
			byKey[k] = g
			out = append(out, g)
		}
		g.entries = append(g.entries, m)
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.locality.compare(b.locality))
	})
	return out
}

// maxPriorities is the maximum number of priorities of an assignment. Envoy accepts 129, but has a
// load balancer, with its ring or table, for each.
const maxPriorities = 32

// boundRanks merges the highest ranks if there are more ranks than priorities.
func boundRanks(entries []entry) {
	distinct := make(map[int]struct{})
	for _, m := range entries {
		distinct[m.rank] = struct{}{}
	}
	if len(distinct) <= maxPriorities {
		return
	}
	last := slices.Sorted(maps.Keys(distinct))[maxPriorities-1]
	for i := range entries {
		entries[i].rank = min(entries[i].rank, last)
	}
}

// assembleGroups turns sorted groups into messages. Ranks become priorities without gaps, because
// Envoy and gRPC clients require that. If the sum of all weights would exceed 32 bits, all are
// halved until it does not. A weight stays at least 1.
func assembleGroups(groups []*group) []*endpointv3.LocalityLbEndpoints {
	shift := shiftOf(groups)
	out := make([]*endpointv3.LocalityLbEndpoints, 0, len(groups))
	priority := uint32(0)
	for i, g := range groups {
		if i > 0 && g.rank != groups[i-1].rank {
			priority++
		}
		// The locality is never nil, because gRPC clients reject an unset one.
		l := &endpointv3.LocalityLbEndpoints{
			Locality: &core.Locality{Region: g.locality.region, Zone: g.locality.zone, SubZone: g.locality.subZone},
			Priority: priority, LbEndpoints: make([]*endpointv3.LbEndpoint, len(g.entries)),
		}
		sum := uint64(0)
		for j, m := range g.entries {
			weight := max(1, m.weight>>shift)
			if m.lb.GetLoadBalancingWeight() != nil {
				m.lb.LoadBalancingWeight.Value = uint32(weight) //nolint:gosec // shifted into 32 bits
			}
			sum += weight
			l.LbEndpoints[j] = m.lb
		}
		if g.weight > 0 {
			sum = g.weight
		}
		l.LoadBalancingWeight = wrapperspb.UInt32(uint32(sum)) //nolint:gosec // shifted into 32 bits
		out = append(out, l)
	}
	return out
}

// shiftOf returns the number of bits to shift all weights by.
func shiftOf(groups []*group) uint {
	total, n := uint64(0), 0
	for _, g := range groups {
		n += len(g.entries)
		for _, m := range g.entries {
			total += m.weight
		}
	}
	return excess(total, n)
}

// excess returns the number of bits to shift n weights with a sum by. It accounts for weights that
// become 1 instead of 0.
func excess(sum uint64, n int) (shift uint) {
	for sum > math.MaxUint32 && sum>>shift+uint64(n) > math.MaxUint32 {
		shift++
	}
	return shift
}
