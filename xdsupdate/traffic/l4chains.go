// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
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

// l4Ranges are the address ranges of a match of a TCP or TLS route. An empty list stands for all
// addresses.
type l4Ranges struct {
	destinations, sources []netip.Prefix
}

// newL4Ranges parses the subnets of a match. An empty source stands for all addresses.
func newL4Ranges(destinations []string, source string) (l4Ranges, error) {
	var out l4Ranges
	for i, text := range destinations {
		prefixes, err := parseSubnet(text)
		if err != nil {
			return l4Ranges{}, fmt.Errorf("%s: %w", objects.Element("destinationSubnets", i), err)
		}
		out.destinations = append(out.destinations, prefixes...)
	}
	if source != "" {
		prefixes, err := parseSubnet(source)
		if err != nil {
			return l4Ranges{}, fmt.Errorf("sourceSubnet: %w", err)
		}
		out.sources = prefixes
	}
	return out, nil
}

func (r l4Ranges) empty() bool { return len(r.destinations)+len(r.sources) == 0 }

// parseSubnet parses an IP address or a CIDR block. A block of length 0 is returned as two halves,
// because Envoy treats such a block as no condition, which would also cover the other IP family.
func parseSubnet(text string) ([]netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("%q is no IP address", text)
		}
		addr = addr.Unmap()
		return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no CIDR block", text)
	}
	if mapped := p.Addr().Is4In6() && p.Bits() >= 96; mapped {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	if p.Bits() > 0 {
		return []netip.Prefix{p}, nil
	}
	upper := netip.AddrFrom4([4]byte{0x80})
	if p.Addr().Is6() {
		upper = netip.AddrFrom16([16]byte{0x80})
	}
	return []netip.Prefix{netip.PrefixFrom(p.Addr(), 1), netip.PrefixFrom(upper, 1)}, nil
}

// anywhere is the range of all addresses of both IP families.
var anywhere netip.Prefix //nolint:gochecknoglobals // It is the zero value, named.

// orAnywhere returns the ranges, or the range of all addresses if there are none.
func orAnywhere(ranges []netip.Prefix) []netip.Prefix {
	if len(ranges) == 0 {
		return []netip.Prefix{anywhere}
	}
	return ranges
}

type rangeSet map[netip.Prefix]struct{}

func newRangeSet(ranges []netip.Prefix) rangeSet {
	out := make(rangeSet, len(ranges))
	for _, r := range ranges {
		out[r] = struct{}{}
	}
	return out
}

// covers reports whether a single range of the set contains a range.
func (s rangeSet) covers(r netip.Prefix) bool {
	if _, ok := s[anywhere]; ok || len(s) == 0 || !r.IsValid() {
		return ok
	}
	for bits := r.Bits(); bits > 0; bits-- {
		if _, ok := s[netip.PrefixFrom(r.Addr(), bits).Masked()]; ok {
			return true
		}
	}
	return false
}

// A listener has a match for each server name of a chain and each range of destinations, so the
// number of matches is the product of both. Matches from the names of one namespace and the ranges
// of another are attributed to the namespace with the larger factor.

// l4Part is the contribution of one object to the matches of a listener.
type l4Part struct {
	chainOwner
	// matches is the number of matches of its chains without ranges of destinations.
	matches int
	// ranges are the ranges that no older object has.
	ranges []netip.Prefix
}

// l4Parts returns the parts of the chains' owners, the oldest first.
func l4Parts(chains []gatewayChain) []*l4Part {
	var out []*l4Part
	of := make(map[chainOwner]*l4Part)
	known := newRangeSet([]netip.Prefix{anywhere})
	for _, c := range byAge(chains) {
		part := of[c.owner()]
		if part == nil {
			part = &l4Part{chainOwner: c.owner()}
			of[part.chainOwner] = part
			out = append(out, part)
		}
		part.matches += max(1, len(c.GetFilterChainMatch().GetServerNames())) * max(1, len(c.sources))
		for _, r := range c.destinations {
			if _, again := known[r]; !again {
				known[r] = struct{}{}
				part.ranges = append(part.ranges, r)
			}
		}
	}
	return out
}

// l4Claims returns the claims of parts on the limit of a listener's matches.
func l4Claims(parts []*l4Part) []claim {
	matches, ranges := make(map[string]int), make(map[string]int)
	for _, part := range parts {
		matches[part.config.Namespace] += part.matches
		ranges[part.config.Namespace] += len(part.ranges)
	}
	out := make([]claim, len(parts))
	for i, part := range parts {
		own := part.config.Namespace
		forMatch, forRange := 1, 0
		for namespace := range matches {
			if namespace == own || ranges[own] > matches[namespace] {
				forRange += matches[namespace]
			}
			if namespace != own && ranges[namespace] <= matches[own] {
				forMatch += ranges[namespace]
			}
		}
		out[i] = claimOf(part.config, part.matches*forMatch+len(part.ranges)*forRange)
	}
	return out
}

// admitDestinations returns the ranges that distinguish destinations, and the objects that are left
// out because the listener would exceed the limit of matches, with errors.
func (st *state) admitDestinations(chains []gatewayChain) ([]netip.Prefix, map[chainOwner]struct{}, []error) {
	parts, limit := l4Parts(chains), st.settings.limits.FilterChains
	over := allot(limit, l4Claims(parts))
	out, left := []netip.Prefix{anywhere}, make(map[chainOwner]struct{})
	var errs []error
	for i, part := range parts {
		if over == nil || !over[i] {
			slices.SortFunc(part.ranges, func(a, b netip.Prefix) int {
				return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
			})
			out = append(out, part.ranges...)
			continue
		}
		left[part.chainOwner] = struct{}{}
		err := fmt.Errorf("with its destinationSubnets the listener would have more than %d matches", limit)
		if len(part.ranges) == 0 {
			err = fmt.Errorf("with it the listener would have more than %d matches", limit)
		}
		errs = append(errs, leftOut(part.config, part.field, closedConnections(err)))
	}
	return out, left, errs
}
