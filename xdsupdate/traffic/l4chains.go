// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Routes are tried in their order, but Envoy chooses a filter chain by one property after
// the other: first by the longest range that has the destination, then by the most
// specific server name, then by the protocols, then by the longest range that has the
// source. It never goes back: a connection to a range that some chain names gets no chain
// that names no range, even if the names of all others differ. So each chain is repeated
// for the ranges of others that lie in its own, and has no range that an earlier chain
// has for the same name.

// gatewayChain is a filter chain of a listener, with what distinguishes its connections
// beside the names that it matches.
type gatewayChain struct {
	*listenerv3.FilterChain
	l4Ranges
	// of has the route whose chain it is, at a field; nil: a server without such routes.
	of    *virtualService
	field string
}

// chainClaim is what chains can be told apart by, but for the source.
type chainClaim struct {
	destination     netip.Prefix
	name, protocols string
}

// chainSpreader makes the filter chains of a listener, of which no two have the same
// match, and each connection gets the first that it fits, of those with its most
// specific server name.
type chainSpreader struct {
	// destinations are the ranges of all chains, and the one of all addresses.
	destinations []netip.Prefix
	taken        map[chainClaim]rangeSet // sources
}

// spreadChains returns the filter chains of a listener, and why chains are left out
// because there would be too many.
func (st *state) spreadChains(chains []gatewayChain) ([]*listenerv3.FilterChain, []error) {
	if !slices.ContainsFunc(chains, func(c gatewayChain) bool { return !c.empty() }) {
		return distinctChains(chains), nil
	}
	destinations, over, errs := st.admitDestinations(chains)
	s := &chainSpreader{destinations: destinations, taken: make(map[chainClaim]rangeSet)}
	var out []*listenerv3.FilterChain
	for _, c := range chains {
		if _, left := over[c.of]; c.of == nil || !left {
			out = append(out, s.spread(c)...)
		}
	}
	return out, errs
}

// distinctChains returns chains without ranges, but those of which an earlier one has a
// server name.
func distinctChains(chains []gatewayChain) []*listenerv3.FilterChain {
	var out []*listenerv3.FilterChain
	taken := make(map[string]struct{}, len(chains))
	for _, c := range chains {
		if claimMatch(taken, c.GetFilterChainMatch()) {
			out = append(out, c.FilterChain)
		}
	}
	return out
}

// claimMatch takes the server names of a match, unless one of them is taken.
func claimMatch(taken map[string]struct{}, m *listenerv3.FilterChainMatch) bool {
	protocols := strings.Join(m.GetApplicationProtocols(), " ")
	names := m.GetServerNames()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, n := range names {
		if _, ok := taken[n+" "+protocols]; ok {
			return false
		}
	}
	for _, n := range names {
		taken[n+" "+protocols] = struct{}{}
	}
	return true
}

// admitDestinations returns the ranges by which destinations are told apart, those of the
// oldest VirtualServices for which there is room: each can repeat every chain of the
// listener.
func (st *state) admitDestinations(chains []gatewayChain) ([]netip.Prefix, map[*virtualService]struct{}, []error) {
	out := []netip.Prefix{anywhere}
	claims, by := 0, make(map[*virtualService][]netip.Prefix)
	for _, c := range chains {
		claims += max(1, len(c.GetFilterChainMatch().GetServerNames())) * max(1, len(c.sources))
		if len(c.destinations) > 0 {
			by[c.of] = append(by[c.of], c.destinations...)
		}
	}
	known, left := newRangeSet(out), make(map[*virtualService]struct{})
	var errs []error
	limit := st.settings.limits.FilterChains
	for _, v := range slices.SortedFunc(maps.Keys(by), compareVirtualServices) {
		added := slices.DeleteFunc(by[v], func(r netip.Prefix) bool { _, ok := known[r]; return ok })
		slices.SortFunc(added, func(a, b netip.Prefix) int {
			return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
		})
		added = slices.Compact(added)
		if exceeds((len(out)+len(added))*claims, limit) {
			left[v] = struct{}{}
			err := fmt.Errorf("with its destinationSubnets the listener would have more than %d matches", limit)
			errs = append(errs, leftOut(v.config, fieldOf(chains, v), closedConnections(err)))
			continue
		}
		for _, r := range added {
			known[r] = struct{}{}
		}
		out = append(out, added...)
	}
	return out, left, errs
}

func fieldOf(chains []gatewayChain, v *virtualService) string {
	return chains[slices.IndexFunc(chains, func(c gatewayChain) bool { return c.of == v })].field
}

// chainPart is a part of a chain: Envoy matches each of its names with each of its ranges.
type chainPart struct {
	destinations, sources []netip.Prefix
	names                 []string
}

// spread returns a chain without what earlier chains have; none if they have one of its
// names wherever it applies.
func (s *chainSpreader) spread(c gatewayChain) []*listenerv3.FilterChain {
	names := c.GetFilterChainMatch().GetServerNames()
	if len(names) == 0 {
		names = []string{""}
	}
	protocols := strings.Join(c.GetFilterChainMatch().GetApplicationProtocols(), " ")
	if slices.ContainsFunc(names, func(n string) bool { return s.takes(c, n, protocols) }) {
		return nil
	}
	own := newRangeSet(orAnywhere(c.destinations))
	var parts []*chainPart
	at := make(map[string]*chainPart)
	for _, d := range s.destinations {
		if !own.covers(d) {
			continue
		}
		for _, part := range s.claim(c, d, names, protocols) {
			key := fmt.Sprint(d.IsValid(), part.names, part.sources)
			if at[key] == nil {
				at[key] = part
				parts = append(parts, part)
			} else {
				at[key].destinations = append(at[key].destinations, d)
			}
		}
	}
	out := make([]*listenerv3.FilterChain, len(parts))
	for i, part := range parts {
		out[i] = envoy.MatchRanges(c.FilterChain, part.names, part.destinations, part.sources)
	}
	return out
}

// takes reports whether earlier chains have all connections with a name that a chain is
// for.
func (s *chainSpreader) takes(c gatewayChain, name, protocols string) bool {
	for _, d := range orAnywhere(c.destinations) {
		taken := s.taken[chainClaim{d, name, protocols}]
		for _, source := range orAnywhere(c.sources) {
			if !taken.covers(source) {
				return false
			}
		}
	}
	return true
}

// claim takes what earlier chains leave of a chain at a destination.
func (s *chainSpreader) claim(c gatewayChain, d netip.Prefix, names []string, protocols string) []*chainPart {
	var parts []*chainPart
	at := make(map[string]*chainPart)
	for _, n := range names {
		key := chainClaim{d, n, protocols}
		var free []netip.Prefix
		for _, source := range orAnywhere(c.sources) {
			if !s.taken[key].covers(source) {
				free = append(free, source)
			}
		}
		if len(free) == 0 {
			continue
		}
		if s.taken[key] == nil {
			s.taken[key] = make(rangeSet)
		}
		for _, source := range free {
			s.taken[key][source] = struct{}{}
		}
		text := fmt.Sprint(free)
		if at[text] == nil {
			at[text] = &chainPart{destinations: []netip.Prefix{d}, sources: free}
			parts = append(parts, at[text])
		}
		at[text].names = append(at[text].names, n)
	}
	return parts
}

// matchesDestinations reports whether some TCP or TLS route is for some destinations.
func (v *virtualService) matchesDestinations() bool {
	for _, r := range v.spec.GetTcp() {
		if slices.ContainsFunc(r.GetMatch(), func(m *networking.L4MatchAttributes) bool { return len(m.GetDestinationSubnets()) > 0 }) {
			return true
		}
	}
	for _, r := range v.spec.GetTls() {
		if slices.ContainsFunc(r.GetMatch(), func(m *networking.TLSMatchAttributes) bool { return len(m.GetDestinationSubnets()) > 0 }) {
			return true
		}
	}
	return false
}
