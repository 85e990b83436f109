// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
)

// LoadAssignment returns the endpoints of a port of a service for EDS. Endpoints
// of other ports, those that clients are not told of (Sent), and those without
// an IP address or unix socket are left out; without any it is an empty
// assignment, which is how a client learns that there are none. The result is
// nil for a host or port that cannot be named.
//
// Endpoints are grouped by locality, all at priority 0; the weight of a locality
// is the sum of the weights in it. Of several endpoints with one address the
// healthiest is taken, because gRPC clients refuse an assignment with the same
// address twice.
func LoadAssignment(
	svc *registry.Service, port *registry.Port, endpoints []*registry.Endpoint, client Client,
) *endpointv3.ClusterLoadAssignment {
	if !usable(svc.Hostname, port) {
		return nil
	}
	return &endpointv3.ClusterLoadAssignment{
		ClusterName: ClusterName(port.Number, svc.Hostname),
		Endpoints:   localities(choose(port, endpoints, client, false), false),
	}
}

// choose returns the endpoints of a port that clients are sent, in the order of
// CompareEndpoints, no address twice.
func choose(port *registry.Port, endpoints []*registry.Endpoint, client Client, names bool) []*registry.Endpoint {
	var out []*registry.Endpoint
	for _, e := range endpoints {
		if !Serves(e, port) || !Sent(e) || client == ForGRPC && IsUnix(e) || len(addresses(e, names)) == 0 {
			continue
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b *registry.Endpoint) int {
		return cmp.Or(cmp.Compare(preference(a), preference(b)), registry.CompareEndpoints(a, b))
	})
	seen := make(map[string]struct{}, len(out))
	out = slices.DeleteFunc(out, func(e *registry.Endpoint) bool { return !claim(seen, e, names) })
	slices.SortStableFunc(out, registry.CompareEndpoints)
	return out
}

func preference(e *registry.Endpoint) int {
	switch e.HealthStatus {
	case registry.HealthUnset, registry.Healthy:
		return 0
	case registry.Draining, registry.Terminating:
		return 1
	default:
		return 2
	}
}

// claim takes all addresses of an endpoint, or none if one is taken.
func claim(seen map[string]struct{}, e *registry.Endpoint, names bool) bool {
	keys := addressKeys(e, names)
	for i, k := range keys {
		if _, taken := seen[k]; taken || slices.Contains(keys[:i], k) {
			return false
		}
	}
	for _, k := range keys {
		seen[k] = struct{}{}
	}
	return true
}

// addressKeys are equal for addresses that clients take for the same.
func addressKeys(e *registry.Endpoint, names bool) []string {
	var keys []string
	for _, a := range addresses(e, names) {
		if a.GetPipe() != nil {
			keys = append(keys, a.GetPipe().GetPath())
			continue
		}
		host := a.GetSocketAddress().GetAddress()
		if addr, err := netip.ParseAddr(host); err == nil {
			host = addr.Unmap().String()
		} else {
			host = strings.ToLower(host)
		}
		keys = append(keys, host+"|"+strconv.FormatUint(uint64(a.GetSocketAddress().GetPortValue()), 10))
	}
	return keys
}

// localities groups endpoints, which are in order, by locality.
func localities(endpoints []*registry.Endpoint, names bool) []*endpointv3.LocalityLbEndpoints {
	groups := make(map[string]*endpointv3.LocalityLbEndpoints)
	weights := make(map[string]uint64)
	for _, e := range endpoints {
		locality := parseLocality(e.Attributes().Locality)
		key := strings.Join([]string{locality.GetRegion(), locality.GetZone(), locality.GetSubZone()}, "/")
		g := groups[key]
		if g == nil {
			g = &endpointv3.LocalityLbEndpoints{Locality: locality}
			groups[key] = g
		}
		g.LbEndpoints = append(g.LbEndpoints, LbEndpoint(e, names))
		weights[key] += uint64(max(1, e.Attributes().LbWeight))
	}
	limitWeights(groups, weights)
	keys := make([]string, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]*endpointv3.LocalityLbEndpoints, 0, len(keys))
	for _, k := range keys {
		groups[k].LoadBalancingWeight = wrapperspb.UInt32(uint32(weights[k]))
		out = append(out, groups[k])
	}
	return out
}

// limitWeights halves weights until no sum exceeds 32 bits, which gRPC clients
// refuse: that of the endpoints of a locality, and that of the localities of a
// priority. A weight stays at least 1.
func limitWeights(groups map[string]*endpointv3.LocalityLbEndpoints, weights map[string]uint64) {
	var total uint64
	for key, w := range weights {
		if shift := excess(w, len(groups[key].GetLbEndpoints())); shift > 0 {
			for _, lb := range groups[key].GetLbEndpoints() {
				if lb.LoadBalancingWeight != nil {
					lb.LoadBalancingWeight.Value = max(1, lb.LoadBalancingWeight.GetValue()>>shift)
				}
			}
		}
		total += w
	}
	if shift := excess(total, len(weights)); shift > 0 {
		for key := range weights {
			weights[key] = max(1, weights[key]>>shift)
		}
	}
}

// excess returns by how many bits n weights with a sum have to be shifted, with
// room for the ones that become 1 instead of 0.
func excess(sum uint64, n int) (shift uint) {
	for sum>>shift+uint64(n) > math.MaxUint32 && sum > math.MaxUint32 {
		shift++
	}
	return shift
}

// parseLocality never returns nil: gRPC clients refuse a locality that is not
// set.
func parseLocality(s string) *core.Locality {
	parts := strings.SplitN(strings.ToValidUTF8(s, ""), "/", 4)
	for len(parts) < 3 {
		parts = append(parts, "")
	}
	return &core.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}
