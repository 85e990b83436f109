// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// tlsChains yields the filter chain of each match of a TLS route that applies to a server, or an
// error if it is left out. The map over contains the routes that exceed limits.
func (st *state) tlsChains(p *proxy, s *gatewayServer, over map[passedRoutes]error, guard *protection) iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.Spec.GetTls()) == 0 || !s.kind.takesTLSRoutes(v) || !s.sharesHost(v) ||
				p.leaves(v.Config, v) != ads.Included {
				continue
			}
			if err := over[passedRoutes{s, v}]; err != nil {
				if !yield(gatewayChain{}, leftOut(v.Config, "spec.tls", closedConnections(err))) {
					return
				}
				continue
			}
			for i, r := range v.Spec.GetTls() {
				for _, m := range r.GetMatch() {
					c, err := st.checkedTLSChain(p, s, v, r, m, guard)
					c.rule = i
					if err != nil {
						err = leftOut(v.Config, objects.Element("spec.tls", i), closedConnections(err))
					}
					if (c.FilterChain != nil || err != nil) && !yield(c, err) {
						return
					}
				}
			}
		}
	}
}

// checkedTLSChain returns the filter chain of a match of a TLS route, or an error if it is left
// out. The FilterChain is nil if the match does not apply to the server.
func (st *state) checkedTLSChain(
	p *proxy, s *gatewayServer, v *objects.VirtualService, r *networking.TLSRoute, m *networking.TLSMatchAttributes, guard *protection,
) (gatewayChain, error) {
	c, err := guard.connections().before(func(filters []*listenerv3.Filter) *listenerv3.FilterChain {
		return st.tlsChain(p, s, v, r, m, filters)
	})
	if c == nil || err != nil {
		return gatewayChain{}, err
	}
	ranges, err := newL4Ranges(m.GetDestinationSubnets(), "")
	if err != nil {
		return gatewayChain{}, err
	}
	return gatewayChain{FilterChain: c, l4Ranges: ranges, of: v, field: "spec.tls"}, nil
}

// tlsChain returns the filter chain of a match of a TLS route, with a TLS context if the server
// terminates TLS. It is nil if the match does not apply to the server.
func (st *state) tlsChain(
	p *proxy, s *gatewayServer, v *objects.VirtualService, r *networking.TLSRoute, m *networking.TLSMatchAttributes, before []*listenerv3.Filter,
) *listenerv3.FilterChain {
	names, ok := s.namesOf(v, m)
	if !ok || !s.fits(p, v, m) {
		return nil
	}
	filter := st.tcpProxy(p, v, s, r.GetRoute()).Filter()
	if filter == nil {
		return nil
	}
	var tls *tlsv3.DownstreamTlsContext
	if s.kind == terminatedTCP {
		if tls = xdsbuild.DownstreamTLS(s.spec, st.settings.Mesh); tls == nil {
			return nil
		}
	}
	return xdsbuild.FilterChain(names, tls, filter, before...)
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
		asked = append(asked, registry.Hostname(strings.ToLower(h)))
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
func (st *state) tcpProxy(p *proxy, v *objects.VirtualService, s *gatewayServer, route []*networking.RouteDestination) xdsbuild.TCPProxy {
	var out xdsbuild.TCPProxy
	for _, d := range route {
		name := st.destinationCluster(p, d.GetDestination(), v.Namespace, s.port())
		if len(route) == 1 {
			out.Cluster = name
		} else {
			out.Shares = append(out.Shares, xdsbuild.ClusterShare{Cluster: name, Weight: uint32(max(d.GetWeight(), 0))})
		}
	}
	if len(route) > 0 {
		st.setPolicy(&out, p, v, s, route[0].GetDestination())
	}
	return out
}

func (st *state) setPolicy(out *xdsbuild.TCPProxy, p *proxy, v *objects.VirtualService, s *gatewayServer, d *networking.Destination) {
	host, svc, port := st.destination(p, d, v.Namespace, s.port())
	tcp := st.policyOf(p, host, svc, port, d.GetSubset()).GetConnectionPool().GetTcp()
	out.IdleTimeout, out.MaxConnectionDuration = tcp.GetIdleTimeout(), tcp.GetMaxConnectionDuration()
	out.HashSourceIP = st.hashOf(p, host, svc, port, d.GetSubset()).GetUseSourceIp()
}
