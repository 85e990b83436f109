// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// tcpRoute returns the route of a server for all its connections: the first TCP route
// that fits, of the VirtualServices that share a host with the server; nil for none, and
// for a server that serves HTTP.
func (st *state) tcpRoute(p *proxy, s *gatewayServer) (*virtualService, *networking.TCPRoute) {
	if s.routes != "" {
		return nil, nil
	}
	for _, v := range st.virtualServicesOf(p, s) {
		if len(v.spec.GetTcp()) == 0 || !s.sharesHost(v) {
			continue
		}
		for _, r := range v.spec.GetTcp() {
			fits := len(r.GetMatch()) == 0 || slices.ContainsFunc(r.GetMatch(), func(m *networking.L4MatchAttributes) bool {
				return s.fits(v, m.GetPort(), m.GetGateways())
			})
			if fits {
				return v, r
			}
		}
	}
	return nil, nil
}

// passthroughChains yields a filter chain for each match of a TLS route that fits a
// server, or why there is none; over says which routes there is no room for.
func (st *state) passthroughChains(p *proxy, s *gatewayServer, over map[passedRoutes]error) iter.Seq2[*listenerv3.FilterChain, error] {
	return func(yield func(*listenerv3.FilterChain, error) bool) {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.spec.GetTls()) == 0 || !s.sharesHost(v) || p.leaves(v.config, v) {
				continue
			}
			if err := over[passedRoutes{s, v}]; err != nil {
				if !yield(nil, leftOut(v.config, "spec.tls", closedConnections(err))) {
					return
				}
				continue
			}
			for i, r := range v.spec.GetTls() {
				for _, m := range r.GetMatch() {
					c, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return st.passthroughChain(p, s, v, r, m) })
					if err != nil {
						err = leftOut(v.config, element("spec.tls", i), closedConnections(err))
					}
					if (c != nil || err != nil) && !yield(c, err) {
						return
					}
				}
			}
		}
	}
}

// passthroughChain returns the filter chain of a match of a TLS route; nil for none.
func (st *state) passthroughChain(
	p *proxy, s *gatewayServer, v *virtualService, r *networking.TLSRoute, m *networking.TLSMatchAttributes,
) *listenerv3.FilterChain {
	names, ok := envoy.ServerNames(m.GetSniHosts())
	if !ok || !s.fits(v, m.GetPort(), m.GetGateways()) {
		return nil
	}
	filter := st.tcpProxy(p, v, s, r.GetRoute()).Filter()
	if filter == nil {
		return nil
	}
	return envoy.FilterChain(names, nil, filter)
}

// fits reports whether a match of a TCP or TLS route is about a server. What else
// such a match says is not looked at (Istio 1.30).
func (s *gatewayServer) fits(v *virtualService, port uint32, gateways []string) bool {
	if port != 0 && port != s.port() {
		return false
	}
	return len(gateways) == 0 || slices.Contains(resolveGateways(gateways, v.namespace), s.gateway.String())
}

// tcpProxy says where connections to a server go by a route. Limits and the hash are
// those of the policy of its first destination.
func (st *state) tcpProxy(p *proxy, v *virtualService, s *gatewayServer, route []*networking.RouteDestination) envoy.TCPProxy {
	var out envoy.TCPProxy
	for _, d := range route {
		name := st.destinationCluster(p, d.GetDestination(), v.namespace, s.port())
		if len(route) == 1 {
			out.Cluster = name
		} else {
			out.Shares = append(out.Shares, envoy.ClusterShare{Cluster: name, Weight: uint32(max(d.GetWeight(), 0))})
		}
	}
	if len(route) > 0 {
		st.setPolicy(&out, p, v, s, route[0].GetDestination())
	}
	return out
}

func (st *state) setPolicy(out *envoy.TCPProxy, p *proxy, v *virtualService, s *gatewayServer, d *networking.Destination) {
	host, svc, port := st.destination(p, d, v.namespace, s.port())
	tcp := st.policyOf(p, host, svc, port, d.GetSubset()).GetConnectionPool().GetTcp()
	out.IdleTimeout, out.MaxConnectionDuration = tcp.GetIdleTimeout(), tcp.GetMaxConnectionDuration()
	out.HashSourceIP = st.hashOf(p, host, svc, port, d.GetSubset()).GetUseSourceIp()
}
