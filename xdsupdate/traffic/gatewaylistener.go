// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// gatewayListener merges the servers of a router's Gateways on one address. It is immutable.
type gatewayListener struct {
	xdsbuild.GatewayListener
	// servers are in the order of precedence. They are either plain HTTP servers, or one TCP
	// server, or TLS servers.
	servers []*gatewayServer
	// taken are the hosts of the TLS servers.
	taken map[registry.Hostname]struct{}
}

// gatewayListeners merges the Gateways that select a router, oldest first, into listeners. Servers
// that conflict with an earlier server are left out:
//
//   - The first server of an address determines the type of its listener. Plain HTTP servers are
//     merged with plain HTTP servers, and TLS servers with TLS servers. All others are left out,
//     including a second TCP server.
//   - A TLS server is left out as a whole if it shares a host with an earlier one, because their
//     connections could not be distinguished. Namespaces of hosts make no difference, because they
//     are not part of the server name that a client sends.
//   - A server on one address is left out if a server of another namespace listens on all addresses
//     of the port, because connections to the address would reach only the newer server. A
//     namespace may divide its own addresses.
func (st *state) gatewayListeners(p *proxy) []*gatewayListener {
	var out []*gatewayListener
	at := make(map[string]*gatewayListener)
	for _, g := range st.GatewaysOf(&p.Proxy) {
		for i, spec := range g.Spec.GetServers() {
			port := p.listeningPort(spec.GetPort().GetNumber())
			if strings.HasPrefix(spec.GetBind(), objects.UnixScheme) {
				port = 0 // A socket has no port.
			}
			server := newGatewayServer(g, i, port)
			if server == nil {
				continue
			}
			address := xdsbuild.GatewayListener{Bind: server.bind, Port: port}
			if address.Bind == "" {
				address.Bind = p.wildcardAddress()
			}
			address.TLS = server.tls()
			address.ProxyProtocol = st.settings.configOf(p).GetGatewayTopology().GetProxyProtocol() != nil
			name := address.Name()
			if at[wildcardName(address)].excludes(server) {
				continue
			}
			if at[name] == nil {
				at[name] = &gatewayListener{GatewayListener: address, taken: make(map[registry.Hostname]struct{})}
				out = append(out, at[name])
			}
			at[name].join(server)
		}
	}
	return out
}

// wildcardName returns the name of the wildcard listener whose connections a listener on one
// address would take. It is empty for listeners that take none.
func wildcardName(l xdsbuild.GatewayListener) string {
	addr, err := netip.ParseAddr(l.Bind)
	if err != nil || addr.IsUnspecified() {
		return ""
	}
	l.Bind = "::"
	if addr.Is4() {
		l.Bind = "0.0.0.0"
	}
	return l.Name()
}

// excludes reports whether a wildcard listener, which may be nil, has a server of another namespace
// than a server on one of its addresses.
func (l *gatewayListener) excludes(s *gatewayServer) bool {
	return l != nil && slices.ContainsFunc(l.servers, func(o *gatewayServer) bool { return o.gateway.Namespace != s.gateway.Namespace })
}

// join adds a server unless it conflicts with an earlier one.
func (l *gatewayListener) join(s *gatewayServer) {
	if len(l.servers) > 0 && (s.tls() != l.TLS || !s.tls() && (s.kind != plainHTTP || l.servers[0].kind != plainHTTP)) {
		return
	}
	if s.tls() {
		for _, h := range s.hosts {
			if _, taken := l.taken[h.name]; taken {
				return
			}
		}
		for _, h := range s.hosts {
			l.taken[h.name] = struct{}{}
		}
	}
	l.servers = append(l.servers, s)
}

// listeningPort returns the port that a router listens on for a port of a Gateway: the target port
// of a service in front of the router, or else the port itself.
func (p *proxy) listeningPort(port uint32) uint32 {
	if target := p.targetPorts[port]; target != 0 {
		return target
	}
	return port
}

// wildcardAddress returns the wildcard address of a router, 0.0.0.0 or "::" if all its addresses
// are IPv6.
func (p *proxy) wildcardAddress() string {
	if len(p.addresses) == 0 {
		return "0.0.0.0"
	}
	for _, a := range p.addresses {
		if addr, err := netip.ParseAddr(a); err != nil || addr.Unmap().Is4() {
			return "0.0.0.0"
		}
	}
	return "::"
}

// routerConfig is the configuration of a router by its Gateways: listeners and route configurations
// by name. It is immutable except for cached computations.
type routerConfig struct {
	listeners map[string]*gatewayListener
	// certificate is the credential that the router presents to backends. It is empty if there is
	// none.
	certificate string
	// routes are the servers of each route configuration.
	routes map[string][]*gatewayServer
	// chains are the names of the filter chains of TLS listeners, by the route configurations of
	// these chains.
	chains map[string]func() *chainNames
}

// routerOf returns the configuration of a router.
func (st *state) routerOf(p *proxy) *routerConfig {
	return st.routers.Get(p, func() *routerConfig { return st.newRouterConfig(p) })
}

func (st *state) newRouterConfig(p *proxy) *routerConfig {
	c := &routerConfig{
		listeners: make(map[string]*gatewayListener), routes: make(map[string][]*gatewayServer),
		chains: make(map[string]func() *chainNames),
	}
	for _, g := range st.GatewaysOf(&p.Proxy) {
		c.certificate = cmp.Or(c.certificate, g.Certificate)
	}
	for _, l := range st.gatewayListeners(p) {
		c.listeners[l.Name()] = l
		if st.settings.checkBind(l.servers[0].bind) != nil {
			continue // No listener refers to its routes.
		}
		names := sync.OnceValue(func() *chainNames { return st.newChainNames(p, l) })
		for _, s := range l.servers {
			switch s.kind {
			case plainHTTP: // an empty bind and the wildcard address are equivalent
				c.routes[l.servers[0].routes] = append(c.routes[l.servers[0].routes], s)
			case terminatedHTTP:
				c.routes[s.routes] = append(c.routes[s.routes], s)
				c.chains[s.routes] = names
			default:
			}
		}
	}
	return c
}

// chainNamesOf returns the names of the filter chains of the listener with a route configuration.
// It is nil for a listener without TLS.
func (c *routerConfig) chainNamesOf(routes string) *chainNames {
	if names := c.chains[routes]; names != nil {
		return names()
	}
	return nil
}

// gatewayRouteNames returns the names of a router's route configurations, sorted.
func (st *state) gatewayRouteNames(p *proxy) []string {
	return slices.Sorted(maps.Keys(st.routerOf(p).routes))
}

// virtualServicesOf returns the VirtualServices that are bound to the Gateway of a server and
// visible to a router, in the order of precedence. It may omit VirtualServices that have no host in
// common with the server.
func (st *state) virtualServicesOf(p *proxy, s *gatewayServer) []*objects.VirtualService {
	gateway := s.gateway.String()
	if slices.ContainsFunc(s.hosts, func(h serverHost) bool { return h.name.IsWildcard() }) {
		return st.VirtualServicesFor(gateway, p.Namespace)
	}
	// Avoid comparing a server with few names to all VirtualServices.
	found := make(map[*objects.VirtualService]struct{})
	add := func(list []*objects.VirtualService) {
		for _, v := range list {
			if v.BoundTo(gateway) && v.Visibility.In(p.Namespace) {
				found[v] = struct{}{}
			}
		}
	}
	for _, h := range s.hosts {
		add(st.Finder.WithHost(h.name))
		if st.Finder.Wildcards > 0 {
			for wildcard := range hostname.Wildcards(h.name) {
				add(st.Finder.WithHost(wildcard))
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b *objects.VirtualService) int {
		return cmp.Or(cmp.Compare(a.Rank(p.Namespace), b.Rank(p.Namespace)), objects.Compare(a, b))
	})
}
