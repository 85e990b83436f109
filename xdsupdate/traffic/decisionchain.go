// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/internal/rbac"
)

// chainFor returns the filter chain that Envoy chooses for a connection: by destination address,
// then by server name, then by source address. The most specific match of each step counts, and
// Envoy does not backtrack to an earlier step. Nil means that no chain matches and the connection
// is closed.
func chainFor(l *listenerv3.Listener, see *rbac.Call) *listenerv3.FilterChain {
	chains := l.GetFilterChains()
	for _, specific := range []func(*listenerv3.FilterChainMatch) int{
		func(m *listenerv3.FilterChainMatch) int {
			return inRanges(m.GetPrefixRanges(), see.Destination, "destination.ip", see)
		},
		func(m *listenerv3.FilterChainMatch) int { return isNamed(m.GetServerNames(), see.ServerName) },
		// A chain restricted to the ALPN protocols of mesh proxies is chosen last.
		func(m *listenerv3.FilterChainMatch) int { return -min(len(m.GetApplicationProtocols()), 1) },
		func(m *listenerv3.FilterChainMatch) int {
			return inRanges(m.GetSourcePrefixRanges(), see.Direct, "source.ip", see)
		},
	} {
		chains = mostSpecificChains(chains, specific)
	}
	if len(chains) == 0 {
		return nil
	}
	return chains[0]
}

// unmatched ranks below every match.
const unmatched = -1 << 10

// mostSpecificChains returns the chains with the most specific match.
func mostSpecificChains(chains []*listenerv3.FilterChain, specific func(*listenerv3.FilterChainMatch) int) (out []*listenerv3.FilterChain) {
	best := unmatched
	for _, c := range chains {
		switch n := specific(c.GetFilterChainMatch()); {
		case n == unmatched || n < best:
		case n > best:
			best, out = n, []*listenerv3.FilterChain{c}
		default:
			out = append(out, c)
		}
	}
	return out
}

// inRanges returns the specificity of the ranges' match for an address. An empty list matches every
// address.
func inRanges(ranges []*core.CidrRange, a netip.Addr, attribute string, see *rbac.Call) int {
	if len(ranges) == 0 {
		return 0
	}
	best := unmatched
	for _, r := range ranges {
		if see.InRange(r, a, attribute) {
			best = max(best, 1+int(r.GetPrefixLen().GetValue()))
		}
	}
	return best
}

// isNamed returns the specificity of the names' match for a server name. An empty list matches
// every name.
func isNamed(names []string, name string) int {
	const whole = 1 << 10
	if len(names) == 0 {
		return 0
	}
	best := unmatched
	for _, n := range names {
		suffix, wildcard := strings.CutPrefix(n, "*")
		switch {
		case !wildcard && n == name:
			return whole
		case wildcard && strings.HasSuffix(name, suffix) && len(name) > len(suffix):
			best = max(best, len(suffix))
		}
	}
	return best
}
