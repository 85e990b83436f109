// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Routes apply in their order, but Envoy chooses a filter chain by one property after the other:
// first by the longest range that contains the destination, then by the most specific server name,
// then by the application protocols, then by the longest range that contains the source. It does
// not backtrack. If some chain has a range that contains the destination, chains without ranges do
// not apply, even if no chain with that range matches the server name. Each chain is therefore
// repeated for the ranges of other chains inside its own, except for ranges that an earlier chain
// has for the same name.

// gatewayChain is a filter chain of a listener, with the ranges that distinguish its connections in
// addition to server names.
type gatewayChain struct {
	*listenerv3.FilterChain
	l4Ranges
	// of is the VirtualService whose route the chain implements, and field is the route's field.
	// Nil stands for a server without such routes.
	of    *objects.VirtualService
	field string
	// rule is the position of the route in its field.
	rule int
	// server is the Gateway server that the chain belongs to.
	server *gatewayServer
}

// chainOwner is an object that filter chains are built from.
type chainOwner struct {
	config *configstore.Config
	field  string
}

// owner returns the VirtualService of a chain, or else the Gateway's server.
func (c gatewayChain) owner() chainOwner {
	if c.of != nil {
		return chainOwner{c.of.Config, c.field}
	}
	return chainOwner{c.server.gateway.Config, c.server.field()}
}

// byAge returns chains sorted by the age of their owners, the oldest first.
func byAge(chains []gatewayChain) []gatewayChain {
	out := slices.Clone(chains)
	slices.SortStableFunc(out, func(a, b gatewayChain) int { return objects.CompareConfigs(a.owner().config, b.owner().config) })
	return out
}

// chainClaim contains the properties that distinguish chains, except for the source.
type chainClaim struct {
	destination     netip.Prefix
	name, protocols string
}

// chainSpreader builds the filter chains of a listener so that no two have the same match. Each
// connection gets the first chain that applies, among the chains with its most specific server
// name.
type chainSpreader struct {
	// destinations are the ranges of all chains, and the range of all addresses.
	destinations []netip.Prefix
	taken        map[chainClaim]rangeSet // sources
}

// spreadChains returns the filter chains of a listener, and errors for chains that exceed limits.
func (st *state) spreadChains(chains []gatewayChain) ([]gatewayChain, []error) {
	s := &chainSpreader{destinations: []netip.Prefix{anywhere}, taken: make(map[chainClaim]rangeSet)}
	var over map[chainOwner]struct{}
	var errs []error
	if slices.ContainsFunc(chains, func(c gatewayChain) bool { return !c.empty() }) {
		s.destinations, over, errs = st.admitDestinations(chains)
	}
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

// chainPart is a part of a chain. Envoy matches each of its names with each of its ranges.
type chainPart struct {
	destinations, sources []netip.Prefix
	names                 []string
}

// spread returns the parts of a chain that earlier chains leave. It returns none if earlier chains
// take all connections of one of its names.
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
		out[i] = xdsbuild.MatchRanges(c.FilterChain, part.names, part.destinations, part.sources)
	}
	return out
}

// takes reports whether earlier chains take all connections of a chain with a name.
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

// claim claims the connections at a destination that earlier chains leave to a chain.
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
