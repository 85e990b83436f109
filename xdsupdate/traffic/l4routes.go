// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// withTLSRoutes returns the VirtualServices whose TLS routes apply to a server, in the order of
// precedence.
func (st *state) withTLSRoutes(p *proxy, s *gatewayServer) []*objects.VirtualService {
	return slices.DeleteFunc(st.virtualServicesOf(p, s), func(v *objects.VirtualService) bool {
		return len(v.Spec.GetTls()) == 0 || !s.kind.takesTLSRoutes(v) || !s.sharesHost(v)
	})
}

// tlsChains adds the filter chain of each match of a TLS route that applies to the server.
func (b *chainBuilder) tlsChains() {
	for _, v := range b.withTLSRoutes(b.proxy, b.server) {
		if b.proxy.leaves(v.Config, v) != ads.Included {
			continue
		}
		if err := b.over[passedRoutes{b.server, v}]; err != nil {
			b.routeLeftOut(v, "spec.tls", err)
			continue
		}
		for i, r := range v.Spec.GetTls() {
			for _, m := range r.GetMatch() {
				b.tlsChain(v, i, m)
			}
		}
	}
}

// routeLeftOut adds the error for a route whose connections are closed.
func (b *chainBuilder) routeLeftOut(v *objects.VirtualService, field string, reason error) {
	b.leftOut = append(b.leftOut, leftOut(v.Config, field, closedConnections(reason)))
}

// tlsChain adds the filter chain of a match of a TLS route, unless the match does not apply to the
// server.
func (b *chainBuilder) tlsChain(v *objects.VirtualService, at int, m *networking.TLSMatchAttributes) {
	names, ok := b.server.namesOf(v, m)
	if !ok || !b.server.fits(b.proxy, v, m) {
		return
	}
	c, err := b.guard.connections().before(func(filters []*listenerv3.Filter) *listenerv3.FilterChain {
		return b.chain(names, b.tcpProxy(v, v.Spec.GetTls()[at].GetRoute()).Filter(), filters)
	})
	out := gatewayChain{FilterChain: c, of: v, field: "spec.tls", rule: at}
	if c != nil {
		out.l4Ranges, err = newL4Ranges(m.GetDestinationSubnets(), "")
	}
	if err != nil {
		b.routeLeftOut(v, objects.Element("spec.tls", at), err)
		return
	}
	b.add(out, nil)
}

// namesOf returns the server names of a match at a server. No names stand for all. If the server
// terminates TLS, the names are restricted to the server's hosts, because its certificate is for
// these.
func (s *gatewayServer) namesOf(v *objects.VirtualService, m *networking.TLSMatchAttributes) (names []string, ok bool) {
	if s.kind != terminatedTCP {
		return xdsbuild.ServerNames(m.GetSniHosts())
	}
	var asked []registry.Hostname
	for _, h := range m.GetSniHosts() {
		asked = append(asked, hostname.Canonical(h))
	}
	for _, h := range intersect(s.hosts, s.names, asked, v.Namespace) {
		names = append(names, string(h))
	}
	return xdsbuild.ServerNames(names)
}

// fits reports whether a match can apply to a server of a router. Source labels and the source
// namespace are compared with the router's own, as in HTTP matches, because the router does not
// know its clients' labels.
func (s *gatewayServer) fits(p *proxy, v *objects.VirtualService, m objects.L4Match) bool {
	if m.GetPort() != 0 && m.GetPort() != s.port() {
		return false
	}
	if n := m.GetSourceNamespace(); n != "" && n != p.Namespace {
		return false
	}
	if !registry.Labels(m.GetSourceLabels()).SubsetOf(p.Labels) {
		return false
	}
	gateways := m.GetGateways()
	return len(gateways) == 0 || slices.Contains(objects.ResolveGateways(gateways, v.Namespace), s.gateway.String())
}

// tcpProxy returns the TCP proxy for a route of a server. Connection limits and the hash come from
// the policy of the first destination.
func (b *chainBuilder) tcpProxy(v *objects.VirtualService, route []*networking.RouteDestination) xdsbuild.TCPProxy {
	var out xdsbuild.TCPProxy
	for i, d := range route {
		to := d.GetDestination()
		host, svc, port := b.destination(b.proxy, to, v.Namespace, b.server.port())
		name := envoy.SubsetClusterName(port, to.GetSubset(), host)
		if len(route) == 1 {
			out.Cluster = name
		} else {
			out.Shares = append(out.Shares, xdsbuild.ClusterShare{Cluster: name, Weight: uint32(max(d.GetWeight(), 0))})
		}
		if i == 0 {
			tcp := b.policyOf(b.proxy, host, svc, port, to.GetSubset()).GetConnectionPool().GetTcp()
			out.IdleTimeout, out.MaxConnectionDuration = tcp.GetIdleTimeout(), tcp.GetMaxConnectionDuration()
			out.HashSourceIP = b.hashOf(b.proxy, host, svc, port, to.GetSubset()).GetUseSourceIp()
		}
	}
	return out
}

// tcpRoute is a TCP route that applies to a server.
type tcpRoute struct {
	of   *objects.VirtualService
	spec *networking.TCPRoute
	at   int // its position
	// ranges are the address ranges of the matches that apply. Without any, the route takes all
	// remaining connections.
	ranges []l4Ranges
}

// tcpRoutes returns the TCP routes that apply to a server, in order, up to the first route that takes
// all remaining connections, and errors for invalid matches.
func (st *state) tcpRoutes(p *proxy, s *gatewayServer) (out []tcpRoute, invalid []error) {
	for _, v := range st.virtualServicesOf(p, s) {
		if len(v.Spec.GetTcp()) == 0 || !s.sharesHost(v) {
			continue
		}
		for i, r := range v.Spec.GetTcp() {
			route := tcpRoute{of: v, spec: r, at: i}
			fits, err := route.setRanges(p, s)
			if err != nil {
				invalid = append(invalid, leftOut(v.Config, objects.Element("spec.tcp", i), closedConnections(err)))
			}
			if !fits {
				continue
			}
			if out = append(out, route); len(route.ranges) == 0 {
				return out, invalid
			}
		}
	}
	return out, invalid
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

// tcpChains adds the filter chains of the server's TCP routes. If a route that is left out is
// restricted to some connections, a filter chain closes them, so that no later route gets them.
func (b *chainBuilder) tcpChains() {
	routes, invalid := b.tcpRoutes(b.proxy, b.server)
	b.leftOut = append(b.leftOut, invalid...)
	over := b.admitTCP(b.server, routes)
	for i, r := range routes {
		how := b.proxy.leaves(r.of.Config, r.of)
		if how == ads.Included && over[i] != nil {
			how = ads.Failing
			b.routeLeftOut(r.of, "spec.tcp", over[i])
		}
		if how <= ads.Failing {
			b.tcpChain(r, how == ads.Failing)
		}
	}
}

// tcpChain adds the filter chains of a route. With left, the route is left out.
func (b *chainBuilder) tcpChain(r tcpRoute, left bool) {
	if left && len(r.ranges) == 0 {
		return
	}
	c, err := b.guard.connections().before(func(before []*listenerv3.Filter) *listenerv3.FilterChain {
		if left {
			return b.serverChain(xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())
		}
		return b.serverChain(b.tcpProxy(r.of, r.spec.GetRoute()).Filter(), before...)
	})
	out := gatewayChain{FilterChain: c, of: r.of, field: "spec.tcp", rule: r.at}
	if c == nil || len(r.ranges) == 0 {
		b.add(out, err)
		return
	}
	for _, out.l4Ranges = range r.ranges {
		b.add(out, nil)
	}
}

// TCP and TLS routes of VirtualServices share a listener as HTTP routes share a route configuration.
// The same limits apply, and they are allotted to namespaces in the same way.

const (
	// chainBytes is an upper bound for the size of a filter chain without server names and
	// destinations.
	chainBytes = 768
	// weightBytes is an upper bound for the size of a destination in a filter chain without its
	// names.
	weightBytes = 48
	// rangeBytes is an upper bound for the size of an address range.
	rangeBytes = 64
)

// l4Cost is what routes of a VirtualService add to a listener.
type l4Cost struct {
	of *objects.VirtualService
	// bytes are those of the routes, and repeated those of all copies that a client has.
	bytes, repeated int
}

// admitL4 returns for each of the routes of a listener an error if they exceed limits, or nil.
func (st *state) admitL4(costs []l4Cost) []error {
	limits := st.settings.limits
	out, claims := make([]error, len(costs)), make([]claim, len(costs))
	for i, c := range costs {
		if claims[i] = claimOf(c.of.Config, c.bytes); exceeds(c.repeated, limits.RepeatedBytes) {
			claims[i].cost, out[i] = 0, tooManyRepetitions(limits.RepeatedBytes)
		}
	}
	for i, over := range allot(limits.SharedBytes, claims) {
		if over {
			out[i] = tooManyBytes("listener", limits.SharedBytes)
		}
	}
	return out
}

// passedRoutes are the TLS routes of a VirtualService at a server.
type passedRoutes struct {
	server *gatewayServer
	of     *objects.VirtualService
}

// admitPassed decides which TLS routes fit on a listener. It returns the errors for the others.
func (st *state) admitPassed(p *proxy, l *gatewayListener) map[passedRoutes]error {
	out := make(map[passedRoutes]error)
	var parts []passedRoutes
	var costs []l4Cost
	for _, s := range l.servers {
		for _, v := range st.withTLSRoutes(p, s) {
			if bytes, limit := st.tlsBytes(v), st.settings.limits.RouteBytes; exceeds(bytes, limit) {
				out[passedRoutes{s, v}] = fmt.Errorf("its routes have more than %d bytes", limit)
			} else {
				parts, costs = append(parts, passedRoutes{s, v}), append(costs, l4Cost{v, bytes, bytes * s.repetition(v)})
			}
		}
	}
	for i, err := range st.admitL4(costs) {
		if err != nil {
			out[parts[i]] = err
		}
	}
	return out
}

// admitTCP returns for each TCP route of a server an error if it exceeds limits, or nil.
func (st *state) admitTCP(s *gatewayServer, routes []tcpRoute) []error {
	bytes, costs := make(map[*objects.VirtualService]int), make([]l4Cost, len(routes))
	for i, r := range routes {
		n := st.tcpBytes(r)
		bytes[r.of] += n
		costs[i] = l4Cost{r.of, n, bytes[r.of] * s.repetition(r.of)}
	}
	return st.admitL4(costs)
}

// repetition returns the number of copies of a VirtualService up to and including a server: one for
// each earlier server, for each Gateway that the VirtualService is bound to.
func (s *gatewayServer) repetition(v *objects.VirtualService) int {
	return s.position * len(v.Gateways)
}

// tlsBytes returns an upper bound for the size of the filter chains of a VirtualService's TLS
// routes.
func (st *state) tlsBytes(v *objects.VirtualService) int {
	n := 0
	for _, r := range v.Spec.GetTls() {
		n += len(r.GetMatch()) * (chainBytes + st.destinationBytes(v, r.GetRoute()))
		for _, m := range r.GetMatch() {
			for _, h := range m.GetSniHosts() {
				n += len(h) + 4
			}
			n += len(m.GetDestinationSubnets()) * rangeBytes
		}
	}
	return n
}

// destinationBytes returns an upper bound for the size of destinations in a filter chain.
func (st *state) destinationBytes(v *objects.VirtualService, route []*networking.RouteDestination) int {
	n := 0
	for _, d := range route {
		host := hostname.Resolve(d.GetDestination().GetHost(), v.Namespace, st.settings.Domain)
		n += len(host) + len(d.GetDestination().GetSubset()) + weightBytes
	}
	return n
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
