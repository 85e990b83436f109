// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// gatewayListener returns a listener of a router by its name, or nil, and the errors for parts of
// it that are left out.
func (st *state) gatewayListener(p *proxy, name string) (*listenerv3.Listener, []error) {
	l := st.routerOf(p).listeners[name]
	if l == nil {
		return nil, nil
	}
	guard := st.protectionOf(p)
	chains, leftOut := st.filterChains(p, l, guard)
	return l.Build(chains), append(leftOut, guard.problems...)
}

// filterChains returns the filter chains of a listener, with their protection, and the errors for
// chains that are left out or closed. Envoy rejects a listener with two equal matches, so a chain
// is left out if an earlier chain has one of its server names.
func (st *state) filterChains(p *proxy, l *gatewayListener, guard *protection) ([]*listenerv3.FilterChain, []error) {
	var chains []gatewayChain
	var leftOut []error
	for c, err := range st.candidateChains(p, l, guard) {
		if err != nil {
			leftOut = append(leftOut, err)
		} else {
			chains = append(chains, c)
		}
	}
	chains, errs := st.spreadChains(chains)
	closed := guard.closeBeyond(chains, st.settings.limits.SharedBytes)
	out := make([]*listenerv3.FilterChain, len(chains))
	for i, c := range chains {
		out[i] = c.FilterChain
		st.made.noteChain(c)
	}
	return out, slices.Concat(leftOut, errs, closed)
}

// candidateChains yields the protected filter chains that the servers of a listener ask for, in the
// order of precedence, or an error for a chain that is left out.
func (st *state) candidateChains(p *proxy, l *gatewayListener, guard *protection) iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		if err := st.settings.checkBind(l.servers[0].bind); err != nil {
			for _, s := range l.servers {
				if s.kind != plainHTTP && p.leaves(s.gateway.Config, s.gateway) != ads.Included {
					continue
				}
				if !yield(gatewayChain{}, s.notBound(err)) {
					return
				}
			}
			return
		}
		over := st.admitPassed(p, l)
		for _, s := range l.servers {
			for c, err := range st.serverChains(p, s, over, guard) {
				c.server = s
				if !yield(c, err) {
					return
				}
			}
			if s.kind == plainHTTP {
				return // the other servers share the route configuration
			}
		}
	}
}

// serverChains yields the filter chains of a server, or an error for a chain that is left out. The
// map over contains the TLS routes that exceed limits.
func (st *state) serverChains(p *proxy, s *gatewayServer, over map[passedRoutes]error, guard *protection) iter.Seq2[gatewayChain, error] {
	if s.kind != plainHTTP { // whose chain has nothing of the Gateway
		if how := p.leaves(s.gateway.Config, s.gateway); how != ads.Included {
			return s.closingChains(how)
		}
	}
	if len(s.unread) > 0 {
		return s.unreadChains()
	}
	guard = guard.of(s)
	switch s.kind {
	case passthrough:
		return st.tlsChains(p, s, over, guard)
	case autoPassthrough:
		return st.autoPassthroughChains(p, s, guard)
	case plainTCP:
		return st.tcpChains(p, s, guard)
	case terminatedTCP:
		return st.terminatedChains(p, s, over, guard)
	default:
		return func(yield func(gatewayChain, error) bool) {
			c, err := guard.http.before(func(filters []*hcm.HttpFilter) *listenerv3.FilterChain {
				protocol := registry.ParseProtocol(s.spec.GetPort().GetProtocol())
				return st.serverChain(s, xdsbuild.GatewayConnectionManager(s.routes, protocol, st.settings.meshOf(p), xdsbuild.HTTPOptions{
					HTTP10: st.settings.options.HTTP10, Filters: filters,
				}))
			})
			if err != nil {
				yield(gatewayChain{}, s.leftOut(err))
			} else if c != nil {
				yield(gatewayChain{FilterChain: c}, nil)
			}
		}
	}
}

// terminatedChains yields the filter chains of a server that terminates TLS without HTTP, or an
// error for a chain that is left out. The chains of TLS routes come first.
func (st *state) terminatedChains(p *proxy, s *gatewayServer, over map[passedRoutes]error, guard *protection) iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		for _, chains := range []iter.Seq2[gatewayChain, error]{st.tlsChains(p, s, over, guard), st.tcpChains(p, s, guard)} {
			for c, err := range chains {
				if !yield(c, err) {
					return
				}
			}
		}
	}
}

// leftOut returns the error for a server whose connections are closed.
func (s *gatewayServer) leftOut(reason error) error {
	return leftOut(s.gateway.Config, s.field(), closedConnections(reason))
}

// field returns the field of the server in its Gateway.
func (s *gatewayServer) field() string { return objects.Element("spec.servers", s.position-1) }

// unreadChains yields, for a server with unreadable TLS settings, the error and a filter chain that
// closes the connections, so that no other server receives them.
func (s *gatewayServer) unreadChains() iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		at := "tls" + strings.TrimPrefix(s.unread[0].Field, "spec")
		if !yield(gatewayChain{}, s.leftOut(fmt.Errorf("%s %s", at, s.unread[0].Message))) {
			return
		}
		s.closingChains(ads.Failing)(yield)
	}
}

// closingChains yields a filter chain that closes the connections of a server with TLS. There is
// none if more of the Gateway is left out: Envoy closes connections without a filter chain.
func (s *gatewayServer) closingChains(how ads.Omission) iter.Seq2[gatewayChain, error] {
	return func(yield func(gatewayChain, error) bool) {
		if names, ok := s.serverNames(); ok && how == ads.Failing && s.tls() {
			yield(gatewayChain{FilterChain: xdsbuild.FilterChain(names, nil, xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())}, nil)
		}
	}
}

// notBound returns the error for a server without a listener.
func (s *gatewayServer) notBound(reason error) error {
	return leftOut(s.gateway.Config, s.field()+".bind", fmt.Errorf("nothing listens for the server: %w", reason))
}

// serverChain returns the filter chain for connections to the hosts of a server, with a filter
// behind the filters in before. It is nil if the server has no filter, TLS settings or server names
// to serve with.
func (st *state) serverChain(s *gatewayServer, filter *listenerv3.Filter, before ...*listenerv3.Filter) *listenerv3.FilterChain {
	if filter == nil {
		return nil
	}
	if !s.tls() {
		return xdsbuild.FilterChain(nil, nil, filter, before...)
	}
	tls := xdsbuild.DownstreamTLS(s.spec, st.settings.Mesh)
	names, ok := s.serverNames()
	if tls == nil || !ok {
		return nil
	}
	return xdsbuild.FilterChain(names, tls, filter, before...)
}
