// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/internal/rbac"
)

// chainFor returns the filter chain of a listener that takes a connection, as Envoy chooses it: by the address that it goes to, then
// by the server name, then by where it comes from; the most specific match of each counts, and none before it is tried again. Nil: none
// does, and the connection is closed.
func chainFor(l *listenerv3.Listener, see *rbac.Call) *listenerv3.FilterChain {
	chains := l.GetFilterChains()
	for _, specific := range []func(*listenerv3.FilterChainMatch) int{
		func(m *listenerv3.FilterChainMatch) int {
			return inRanges(m.GetPrefixRanges(), see.Destination, "destination.ip", see)
		},
		func(m *listenerv3.FilterChainMatch) int { return isNamed(m.GetServerNames(), see.ServerName) },
		// A chain for protocols of TLS that only proxies of the mesh ask for is the last to be thought of.
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

// unmatched is what is less specific than everything that matches.
const unmatched = -1 << 10

// mostSpecificChains returns those of some chains whose match is the most specific.
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

// inRanges returns how specific the range of an address is; no ranges are for all addresses.
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

// isNamed returns how specific the name of a server is; no names are for all connections.
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
