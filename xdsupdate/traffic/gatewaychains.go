// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
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
		unbound := st.settings.checkBind(l.servers[0].bind)
		w := chainWalk{state: st, proxy: p}
		if unbound == nil {
			w.over = st.admitPassed(p, l)
		}
		for _, s := range l.servers {
			w.server, w.guard = s, guard.of(s)
			w.yield = func(c gatewayChain, err error) bool {
				c.server = s
				return yield(c, err)
			}
			if unbound != nil {
				if !w.notBound(unbound) {
					return
				}
			} else if !w.chains() || s.kind == plainHTTP {
				return // the other servers share the route configuration
			}
		}
	}
}

// chainWalk yields the filter chains of one server of a listener, or errors for chains that are left
// out. Its methods return false if yield did, so that no more are wanted.
type chainWalk struct {
	*state
	proxy  *proxy
	server *gatewayServer
	guard  *protection
	// over contains the TLS routes of the listener that exceed limits.
	over  map[passedRoutes]error
	yield func(gatewayChain, error) bool
}

// add yields a chain, unless it is nil, or the error for its server, whose connections are closed.
func (w *chainWalk) add(c gatewayChain, err error) bool {
	if err != nil {
		return w.yield(gatewayChain{}, leftOut(w.server.gateway.Config, w.server.field(), closedConnections(err)))
	}
	return c.FilterChain == nil || w.yield(c, nil)
}

// notBound yields the error for a server without a listener.
func (w *chainWalk) notBound(reason error) bool {
	s := w.server
	if s.kind != plainHTTP && w.proxy.leaves(s.gateway.Config, s.gateway) != ads.Included {
		return true
	}
	return w.yield(gatewayChain{}, leftOut(s.gateway.Config, s.field()+".bind", fmt.Errorf("nothing listens for the server: %w", reason)))
}

func (w *chainWalk) chains() bool {
	s := w.server
	if s.kind != plainHTTP { // whose chain has nothing of the Gateway
		if how := w.proxy.leaves(s.gateway.Config, s.gateway); how != ads.Included {
			// Envoy closes connections without a filter chain, too.
			return how != ads.Failing || w.closingChain()
		}
	}
	if len(s.unread) > 0 { // no other server may receive the connections
		at := "tls" + strings.TrimPrefix(s.unread[0].Field, "spec")
		return w.add(gatewayChain{}, fmt.Errorf("%s %s", at, s.unread[0].Message)) && w.closingChain()
	}
	switch s.kind {
	case passthrough:
		return w.tlsChains()
	case autoPassthrough:
		return w.autoPassthroughChains()
	case plainTCP:
		return w.tcpChains()
	case terminatedTCP: // the chains of TLS routes come first
		return w.tlsChains() && w.tcpChains()
	default:
		return w.httpChain()
	}
}

func (w *chainWalk) httpChain() bool {
	c, err := w.guard.http.before(func(filters []*hcm.HttpFilter) *listenerv3.FilterChain {
		protocol := registry.ParseProtocol(w.server.spec.GetPort().GetProtocol())
		return w.serverChain(xdsbuild.GatewayConnectionManager(w.server.routes, protocol, w.settings.meshOf(w.proxy), xdsbuild.HTTPOptions{
			HTTP10: w.settings.options.HTTP10, Filters: filters,
		}))
	})
	return w.add(gatewayChain{FilterChain: c}, err)
}

// closingChain yields a filter chain that closes the connections of a server with TLS.
func (w *chainWalk) closingChain() bool {
	names, ok := w.server.serverNames()
	if !ok || !w.server.tls() {
		return true
	}
	return w.add(gatewayChain{FilterChain: xdsbuild.FilterChain(names, nil, xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())}, nil)
}

// serverChain returns the filter chain for connections to the hosts of a server, with a filter
// behind the filters in before. It is nil if the server has no filter, TLS settings or server names
// to serve with.
func (w *chainWalk) serverChain(filter *listenerv3.Filter, before ...*listenerv3.Filter) *listenerv3.FilterChain {
	if !w.server.tls() {
		return w.chain(nil, filter, before)
	}
	names, ok := w.server.serverNames()
	if !ok {
		return nil
	}
	return w.chain(names, filter, before)
}

// chain returns the filter chain for some server names, with a TLS context if the server terminates
// TLS.
func (w *chainWalk) chain(names []string, filter *listenerv3.Filter, before []*listenerv3.Filter) *listenerv3.FilterChain {
	if filter == nil {
		return nil
	}
	var tls *tlsv3.DownstreamTlsContext
	if w.server.kind == terminatedHTTP || w.server.kind == terminatedTCP {
		if tls = xdsbuild.DownstreamTLS(w.server.spec, w.settings.Mesh); tls == nil {
			return nil
		}
	}
	return xdsbuild.FilterChain(names, tls, filter, before...)
}

// field returns the field of the server in its Gateway.
func (s *gatewayServer) field() string { return objects.Element("spec.servers", s.position-1) }

// autoPassthroughChains yields the filter chains of an AUTO_PASSTHROUGH server, one for each port
// and subset of the mesh services that its hosts cover.
func (w *chainWalk) autoPassthroughChains() bool {
	passed, err := w.passedServices(w.proxy, w.server)
	if !w.add(gatewayChain{}, err) {
		return false
	}
	for _, svc := range passed {
		for _, name := range w.passedNames(w.proxy, svc) {
			c, err := w.guard.connections().before(func(filters []*listenerv3.Filter) *listenerv3.FilterChain {
				return xdsbuild.AutoPassthroughChain(name, filters...)
			})
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if !w.add(gatewayChain{FilterChain: c}, err) {
				return false
			}
		}
	}
	return true
}

// passedServices returns the services that have filter chains at an AUTO_PASSTHROUGH server, sorted
// by host name. The error reports services that exceed the limit of filter chains. The servers of a
// Gateway share the limit.
func (st *state) passedServices(p *proxy, s *gatewayServer) ([]*mesh.Service, error) {
	var covered []*mesh.Service
	for _, svc := range st.scopeOf(p).Sorted {
		if s.covers(svc) {
			covered = append(covered, svc)
		}
	}
	claims := make([]claim, len(covered))
	for i, svc := range covered {
		chains := len(st.passedNames(p, svc)) * s.gateway.Passing()
		claims[i] = claim{svc.Of[0].CreationTime, string(hostname.Lower(svc.Host)), svc.Namespace, chains}
	}
	limit := st.settings.limits.FilterChains
	over := allot(limit, claims)
	if over == nil {
		return covered, nil
	}
	var passed, left []*mesh.Service
	for i, svc := range covered {
		if over[i] {
			left = append(left, svc)
		} else {
			passed = append(passed, svc)
		}
	}
	return passed, fmt.Errorf("for all services there would be more than %d filter chains%s: there are none for %s, and for %d others",
		limit, beyondShare, left[0].Host, len(left)-1)
}

// covers reports whether a service of the mesh is behind an AUTO_PASSTHROUGH server.
func (s *gatewayServer) covers(svc *mesh.Service) bool {
	return !svc.Of[0].MeshExternal && slices.ContainsFunc(s.hosts, func(h serverHost) bool {
		return h.admits(svc.Namespace) && hostname.Lower(svc.Host).SubsetOf(h.name)
	})
}

// passedNames returns the names of a service's clusters behind AUTO_PASSTHROUGH servers. Clients
// send these names as their TLS server name. Names with a star, of wildcard hosts and of invalid
// subsets, are left out, because Envoy rejects listeners with a star in the middle of a name.
func (st *state) passedNames(p *proxy, svc *mesh.Service) []string {
	var out []string
	m, _ := st.RuleOf(&p.Proxy, svc.Host, svc.Namespace)
	subsets := st.subsetsOf(m, svc.Host)
	for _, port := range svc.Ports {
		if port.Protocol == registry.ProtocolUDP {
			continue
		}
		out = append(out, envoy.SNIName(port.Number, "", svc.Host))
		for _, subset := range subsets {
			out = append(out, envoy.SNIName(port.Number, subset.GetName(), svc.Host))
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return strings.Contains(name, "*") })
}

// filters are the filters that policies add to every filter chain. They are immutable.
type filters[F proto.Message] struct {
	list []F
	// bytes is the total encoded size.
	bytes int
	// refused says why the filters cannot be sent. It is nil if they can.
	refused error
}

// newFilters returns filters. They cannot be sent if refused is set or one cannot be encoded.
func newFilters[F proto.Message](list []F, refused error) filters[F] {
	out := filters[F]{list: list, refused: refused}
	for _, f := range list {
		encoded, err := proto.Marshal(f)
		out.bytes, out.refused = out.bytes+len(encoded), errors.Join(out.refused, err)
	}
	return out
}

// before builds a filter chain behind the filters. It returns nil if build returns nil, and an
// error if the chain or the filters cannot be sent. The chain is validated without the filters,
// because these are the same in all chains and already validated.
func (x filters[F]) before(build func(filters []F) *listenerv3.FilterChain) (*listenerv3.FilterChain, error) {
	c, err := xdsbuild.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return build(nil) })
	switch {
	case c == nil || err != nil:
		return nil, err
	case x.refused != nil:
		return nil, x.refused
	case len(x.list) == 0:
		return c, nil
	default:
		return build(x.list), nil
	}
}
