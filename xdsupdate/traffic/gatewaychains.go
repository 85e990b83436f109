// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// gatewayListener returns the listener of a router by its name, nil for none, and what
// is left out of it.
func (st *state) gatewayListener(p *proxy, name string) (*listenerv3.Listener, []error) {
	l := st.routerOf(p).listeners[name]
	if l == nil {
		return nil, nil
	}
	var chains []*listenerv3.FilterChain
	var leftOut []error
	for c, err := range st.filterChains(p, l) {
		if err != nil {
			leftOut = append(leftOut, err)
		} else {
			chains = append(chains, c)
		}
	}
	return l.Build(chains), leftOut
}

// filterChains yields the filter chains of a listener, or why one is left out of it
// although its object asks for it. Envoy refuses a listener in which two have the same
// match, so a chain is left out if a server name of its is taken by an earlier one.
func (st *state) filterChains(p *proxy, l *gatewayListener) iter.Seq2[*listenerv3.FilterChain, error] {
	return func(yield func(*listenerv3.FilterChain, error) bool) {
		if err := st.settings.checkBind(l.servers[0].bind); err != nil {
			for _, s := range l.servers {
				if s.kind != plainHTTP && p.leaves(s.gateway.config, s.gateway) {
					continue
				}
				if !yield(nil, s.notBound(err)) {
					return
				}
			}
			return
		}
		taken := make(map[string]struct{})
		over := st.admitPassed(p, l)
		for _, s := range l.servers {
			for c, err := range st.serverChains(p, s, over) {
				if (err != nil || claimMatch(taken, c.GetFilterChainMatch())) && !yield(c, err) {
					return
				}
			}
			if s.kind == plainHTTP {
				return // the others share the route configuration
			}
		}
	}
}

// serverChains yields the filter chains of a server, or why one is left out; over says
// which TLS routes there is no room for.
func (st *state) serverChains(p *proxy, s *gatewayServer, over map[passedRoutes]error) iter.Seq2[*listenerv3.FilterChain, error] {
	switch s.kind {
	case passthrough:
		return st.passthroughChains(p, s, over)
	case autoPassthrough:
		return st.autoPassthroughChains(p, s)
	default:
		return func(yield func(*listenerv3.FilterChain, error) bool) {
			v, route := st.tcpRoute(p, s)
			if route != nil && p.leaves(v.config, v) {
				return
			}
			if route != nil {
				if err := st.tcpTooOften(v, s, route); err != nil {
					yield(nil, leftOut(v.config, "spec.tcp", closedConnections(err)))
					return
				}
			}
			c, err := envoy.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return st.serverChain(p, s) })
			if err != nil {
				yield(nil, s.leftOut(err))
			} else if c != nil {
				yield(c, nil)
			}
		}
	}
}

// leftOut says why connections to a server are closed.
func (s *gatewayServer) leftOut(reason error) error {
	field := element("spec.servers", slices.Index(s.gateway.spec.GetServers(), s.spec))
	return leftOut(s.gateway.config, field, closedConnections(reason))
}

// notBound says why nothing listens for a server.
func (s *gatewayServer) notBound(reason error) error {
	field := element("spec.servers", slices.Index(s.gateway.spec.GetServers(), s.spec))
	return leftOut(s.gateway.config, field+".bind", fmt.Errorf("nothing listens for the server: %w", reason))
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
		filter = envoy.GatewayConnectionManager(s.routes, protocol, st.settings.meshOf(p))
	} else if v, route := st.tcpRoute(p, s); route != nil {
		filter = st.tcpProxy(p, v, s, route.GetRoute()).Filter()
	}
	if filter == nil {
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
