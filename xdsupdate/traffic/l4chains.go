// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
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
	// server is the server of a Gateway that the chain is for.
	server *gatewayServer
}

// chainOwner is an object that filter chains are made of.
type chainOwner struct {
	config *configstore.Config
	field  string
}

// owner returns the VirtualService of a chain, or the server of a Gateway if there is none.
func (c gatewayChain) owner() chainOwner {
	if c.of != nil {
		return chainOwner{c.of.config, c.field}
	}
	return chainOwner{c.server.gateway.config, c.server.field()}
}

// byAge returns chains with the oldest owners first.
func byAge(chains []gatewayChain) []gatewayChain {
	out := slices.Clone(chains)
	slices.SortStableFunc(out, func(a, b gatewayChain) int { return compareConfigs(a.owner().config, b.owner().config) })
	return out
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
func (st *state) spreadChains(chains []gatewayChain) ([]gatewayChain, []error) {
	if !slices.ContainsFunc(chains, func(c gatewayChain) bool { return !c.empty() }) {
		return distinctChains(chains), nil
	}
	destinations, over, errs := st.admitDestinations(chains)
	s := &chainSpreader{destinations: destinations, taken: make(map[chainClaim]rangeSet)}
	var out []gatewayChain
	for _, c := range chains {
		if _, left := over[c.owner()]; left {
			continue
		}
		for _, part := range s.spread(c) {
			c.FilterChain = part
			out = append(out, c)
		}
	}
	return out, errs
}

// distinctChains returns chains without ranges, but those of which an earlier one has a
// server name.
func distinctChains(chains []gatewayChain) []gatewayChain {
	var out []gatewayChain
	taken := make(map[string]struct{}, len(chains))
	for _, c := range chains {
		if claimMatch(taken, c.GetFilterChainMatch()) {
			out = append(out, c)
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
