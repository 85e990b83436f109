// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
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
	if len(chains) == 0 {
		return nil, nil // Ineffective reports the reasons. With an error, clients would keep an earlier listener.
	}
	return l.Build(chains), append(leftOut, guard.problems...)
}

// filterChains returns the filter chains of a listener, with their protection, and the errors for
// chains that are left out or closed. Envoy rejects a listener with two equal matches, so a chain
// is left out if an earlier chain has one of its server names.
func (st *state) filterChains(p *proxy, l *gatewayListener, guard *protection) ([]*listenerv3.FilterChain, []error) {
	b := chainBuilder{state: st, proxy: p}
	unbound := st.settings.checkBind(l.servers[0].bind)
	if unbound == nil {
		b.over = st.admitPassed(p, l)
	}
	for _, s := range l.servers {
		b.server, b.guard = s, guard.of(s)
		if unbound != nil {
			b.notBound(unbound)
			continue
		}
		if b.serve(); s.kind == plainHTTP {
			break // the other servers share the route configuration
		}
	}
	chains, errs := st.spreadChains(b.made)
	closed := guard.closeBeyond(chains, st.settings.limits.SharedBytes)
	out := make([]*listenerv3.FilterChain, len(chains))
	for i, c := range chains {
		out[i] = c.FilterChain
		st.made.noteChain(c)
	}
	return out, slices.Concat(b.leftOut, errs, closed)
}

// chainBuilder collects the protected filter chains that the servers of a listener ask for, in the
// order of precedence, and the errors for chains that are left out.
type chainBuilder struct {
	*state
	proxy *proxy
	// server is the current server, and guard is its protection.
	server *gatewayServer
	guard  *protection
	// over contains the TLS routes of the listener that exceed limits.
	over    map[passedRoutes]error
	made    []gatewayChain
	leftOut []error
}

// add adds a chain, unless it is nil, or the error for the server, whose connections are closed.
func (b *chainBuilder) add(c gatewayChain, err error) {
	if err != nil {
		b.leftOut = append(b.leftOut, leftOut(b.server.gateway.Config, b.server.field(), closedConnections(err)))
	} else if c.FilterChain != nil {
		c.server = b.server
		b.made = append(b.made, c)
	}
}

// notBound adds the error for a server without a listener.
func (b *chainBuilder) notBound(reason error) {
	s := b.server
	if s.kind == plainHTTP || b.proxy.leaves(s.gateway.Config, s.gateway) == ads.Included {
		b.leftOut = append(b.leftOut, leftOut(s.gateway.Config, s.field()+".bind", fmt.Errorf("nothing listens for the server: %w", reason)))
	}
}

// serve adds the filter chains of the server.
func (b *chainBuilder) serve() {
	s := b.server
	if s.kind != plainHTTP { // whose chain has nothing of the Gateway
		if how := b.proxy.leaves(s.gateway.Config, s.gateway); how != ads.Included {
			if how == ads.Failing { // Envoy closes connections without a filter chain, too.
				b.closingChain()
			}
			return
		}
	}
	if len(s.unread) > 0 { // no other server may receive the connections
		at := "tls" + strings.TrimPrefix(s.unread[0].Field, "spec")
		b.add(gatewayChain{}, fmt.Errorf("%s %s", at, s.unread[0].Message))
		b.closingChain()
		return
	}
	switch s.kind {
	case passthrough:
		b.tlsChains()
	case autoPassthrough:
		b.autoPassthroughChains()
	case plainTCP:
		b.tcpChains()
	case terminatedTCP: // the chains of TLS routes come first
		b.tlsChains()
		b.tcpChains()
	default:
		b.httpChain()
	}
}

func (b *chainBuilder) httpChain() {
	c, err := b.guard.http.before(func(filters []*hcm.HttpFilter) *listenerv3.FilterChain {
		protocol := registry.ParseProtocol(b.server.spec.GetPort().GetProtocol())
		return b.serverChain(xdsbuild.GatewayConnectionManager(b.server.routes, protocol, b.settings.meshOf(b.proxy), xdsbuild.HTTPOptions{
			HTTP10: b.settings.options.HTTP10, Filters: filters, Internal: b.settings.internal,
		}))
	})
	b.add(gatewayChain{FilterChain: c}, err)
}

// closingChain adds a filter chain that closes the connections of a server with TLS.
func (b *chainBuilder) closingChain() {
	if names, ok := b.server.serverNames(); ok && b.server.tls() {
		b.add(gatewayChain{FilterChain: xdsbuild.FilterChain(names, nil, xdsbuild.TCPProxy{Cluster: xdsbuild.BlackHole}.Filter())}, nil)
	}
}

// serverChain returns the filter chain for connections to the hosts of a server, with a filter
// behind the filters in before. It is nil if the server has no filter, TLS settings or server names
// to serve with.
func (b *chainBuilder) serverChain(filter *listenerv3.Filter, before ...*listenerv3.Filter) *listenerv3.FilterChain {
	if !b.server.tls() {
		return b.chain(nil, filter, before)
	}
	names, ok := b.server.serverNames()
	if !ok {
		return nil
	}
	return b.chain(names, filter, before)
}

// chain returns the filter chain for some server names, with a TLS context if the server terminates
// TLS.
func (b *chainBuilder) chain(names []string, filter *listenerv3.Filter, before []*listenerv3.Filter) *listenerv3.FilterChain {
	if filter == nil {
		return nil
	}
	var tls *tlsv3.DownstreamTlsContext
	if b.server.kind == terminatedHTTP || b.server.kind == terminatedTCP {
		if tls = xdsbuild.DownstreamTLS(b.server.spec, b.settings.Mesh); tls == nil {
			return nil
		}
	}
	return xdsbuild.FilterChain(names, tls, filter, before...)
}

// field returns the field of the server in its Gateway.
func (s *gatewayServer) field() string { return objects.Element("spec.servers", s.position-1) }

// autoPassthroughChains adds the filter chains of an AUTO_PASSTHROUGH server, one for each port and
// subset of the mesh services that its hosts cover. They have no filters of AuthorizationPolicies,
// as in Istio: the workloads behind them check policies and know the clients.
func (b *chainBuilder) autoPassthroughChains() {
	passed, err := b.passedServices(b.proxy, b.server)
	b.add(gatewayChain{}, err)
	for _, svc := range passed {
		for _, name := range b.passedNames(b.proxy, svc) {
			c, err := xdsbuild.Try(envoy.ForEnvoy, func() *listenerv3.FilterChain { return xdsbuild.AutoPassthroughChain(name) })
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			b.add(gatewayChain{FilterChain: c}, err)
		}
	}
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
