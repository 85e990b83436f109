// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// gatewayListener returns the listener of a router by its name; nil for none.
func (st *state) gatewayListener(p *proxy, name string) *listenerv3.Listener {
	l := st.routerOf(p).listeners[name]
	if l == nil {
		return nil
	}
	return l.Build(slices.Collect(st.filterChains(p, l)))
}

// filterChains yields the filter chains of a listener. Envoy refuses a listener in
// which two have the same match, so a chain is left out if a server name of its is
// taken by an earlier one.
func (st *state) filterChains(p *proxy, l *gatewayListener) iter.Seq[*listenerv3.FilterChain] {
	return func(yield func(*listenerv3.FilterChain) bool) {
		taken := make(map[string]struct{})
		for _, s := range l.servers {
			for _, c := range st.serverChains(p, s) {
				if claimMatch(taken, c.GetFilterChainMatch()) && !yield(c) {
					return
				}
			}
			if s.kind == plainHTTP {
				return // the others share the route configuration
			}
		}
	}
}

// serverChains returns the filter chains of a server.
func (st *state) serverChains(p *proxy, s *gatewayServer) []*listenerv3.FilterChain {
	switch s.kind {
	case passthrough:
		return st.passthroughChains(p, s)
	case autoPassthrough:
		return st.autoPassthroughChains(p, s)
	default:
		if c := st.serverChain(p, s); c != nil {
			return []*listenerv3.FilterChain{c}
		}
		return nil
	}
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

// serverChain returns the filter chain of a server that serves all connections to
// its hosts in one way; nil if it has nothing to serve them with.
func (st *state) serverChain(p *proxy, s *gatewayServer) *listenerv3.FilterChain {
	mesh := st.settings.mesh
	var filter *listenerv3.Filter
	if s.routes != "" {
		protocol := registry.ParseProtocol(s.spec.GetPort().GetProtocol())
		filter = envoy.GatewayConnectionManager(s.routes, protocol, mesh)
	} else if filter = st.tcpFilter(p, s); filter == nil {
		return nil
	}
	if !s.tls() {
		return envoy.FilterChain(nil, nil, filter)
	}
	tls := envoy.DownstreamTLS(s.spec, mesh)
	names, ok := s.serverNames()
	if tls == nil || !ok {
		return nil
	}
	return envoy.FilterChain(names, tls, filter)
}
