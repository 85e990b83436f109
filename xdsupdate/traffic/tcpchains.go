// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// tcpRoute is a TCP route that applies to a server.
type tcpRoute struct {
	of    *objects.VirtualService
	spec  *networking.TCPRoute
	field string
	at    int // its position
	// ranges are the address ranges of the matches that apply. Without any, the route takes all
	// remaining connections.
	ranges []l4Ranges
}

// tcpRoutes yields the TCP routes that apply to a server, in order, up to the first route that
// takes all remaining connections. For an invalid match it yields an error.
func (st *state) tcpRoutes(p *proxy, s *gatewayServer) iter.Seq2[tcpRoute, error] {
	return func(yield func(tcpRoute, error) bool) {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.Spec.GetTcp()) == 0 || !s.sharesHost(v) {
				continue
			}
			for i, r := range v.Spec.GetTcp() {
				route := tcpRoute{of: v, spec: r, field: objects.Element("spec.tcp", i), at: i}
				fits, err := route.setRanges(p, s)
				if err != nil && !yield(tcpRoute{}, leftOut(v.Config, route.field, closedConnections(err))) {
					return
				}
				if fits && (!yield(route, nil) || len(route.ranges) == 0) {
					return
				}
			}
		}
	}
}

// setRanges sets the ranges of the route at a server, and reports whether any of its matches
// applies. Invalid matches do not.
func (r *tcpRoute) setRanges(p *proxy, s *gatewayServer) (fits bool, failed error) {
	for _, m := range r.spec.GetMatch() {
		if !s.fits(p, r.of, m) {
			continue
		}
		ranges, err := newL4Ranges(m.GetDestinationSubnets(), m.GetSourceSubnet())
		switch {
		case err != nil:
			failed = err
		case ranges.empty():
			r.ranges = nil
			return true, failed
		default:
			r.ranges = append(r.ranges, ranges)
		}
	}
	return len(r.ranges) > 0 || len(r.spec.GetMatch()) == 0, failed
}

// tcpChains yields the filter chains of a server's TCP routes, or an error for a route that is left
// out. If such a route is restricted to some connections, a filter chain closes them, so that no
// later route gets them.
func (st *state) tcpChains(p *proxy, s *gatewayServer, guard *protection) iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		var routes []tcpRoute
		for r, err := range st.tcpRoutes(p, s) {
			if err == nil {
				routes = append(routes, r)
			} else if !yield(gatewayChain{}, err) {
				return
			}
		}
		over := st.admitTCP(s, routes)
		for i, r := range routes {
			how := p.leaves(r.of.Config, r.of)
			if how > ads.Failing {
				continue
			}
			left := how == ads.Failing
			if over[i] != nil && !left {
				left = true
				if !yield(gatewayChain{}, leftOut(r.of.Config, "spec.tcp", closedConnections(over[i]))) {
					return
				}
			}
			if !st.yieldTCPChains(p, s, r, left, guard, yield) {
				return
			}
		}
	}
}

// yieldTCPChains yields the filter chains of a route. With left, the route is left out.
func (st *state) yieldTCPChains(
	p *proxy, s *gatewayServer, r tcpRoute, left bool, guard *protection, yield func(gatewayChain, error) bool,
) bool {
	build := func(before []*listenerv3.Filter) *listenerv3.FilterChain {
		return st.serverChain(s, st.tcpProxy(p, r.of, s, r.spec.GetRoute()).Filter(), before...)
	}
	if left {
		if len(r.ranges) == 0 {
			return true
		}
		build = func([]*listenerv3.Filter) *listenerv3.FilterChain {
			return st.serverChain(s, xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())
		}
	}
	c, err := guard.connections().before(build)
	if err != nil {
		return yield(gatewayChain{}, s.leftOut(err))
	}
	if c == nil {
		return true
	}
	for _, ranges := range r.ranges {
		if !yield(gatewayChain{FilterChain: c, l4Ranges: ranges, of: r.of, field: "spec.tcp", rule: r.at}, nil) {
			return false
		}
	}
	return len(r.ranges) > 0 || yield(gatewayChain{FilterChain: c, of: r.of, field: "spec.tcp", rule: r.at}, nil)
}

// tcpBytes returns an upper bound for the size of a route in its filter chains.
func (st *state) tcpBytes(r tcpRoute) int {
	n := st.destinationBytes(r.of, r.spec.GetRoute())
	if len(r.ranges) == 0 {
		return n
	}
	bytes := 0
	for _, ranges := range r.ranges {
		bytes += chainBytes + n + rangeBytes*(len(ranges.destinations)+len(ranges.sources))
	}
	return bytes
}

// admitTCP returns for each TCP route of a server an error if it exceeds limits, or nil.
func (st *state) admitTCP(s *gatewayServer, routes []tcpRoute) []error {
	out := make([]error, len(routes))
	limits, bytes := st.settings.limits, make(map[*objects.VirtualService]int)
	claims := make([]claim, len(routes))
	for i, r := range routes {
		n := st.tcpBytes(r)
		bytes[r.of] += n
		claims[i] = claimOf(r.of.Config, 0)
		if exceeds(bytes[r.of]*s.repetition(r.of), limits.RepeatedBytes) {
			out[i] = tooManyRepetitions(limits.RepeatedBytes)
		} else {
			claims[i].cost = n
		}
	}
	for i, over := range allot(limits.SharedBytes, claims) {
		if over {
			out[i] = tooManyBytes("listener", limits.SharedBytes)
		}
	}
	return out
}
