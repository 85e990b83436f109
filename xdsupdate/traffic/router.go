// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// routerConfig is the configuration of a router by its Gateways: listeners and route configurations
// by name. It is immutable except for cached computations.
type routerConfig struct {
	listeners map[string]*gatewayListener
	// certificate is the credential that the router presents to backends. It is empty if there is
	// none.
	certificate string
	// served returns the names of the listeners with filter chains, sorted.
	served func() []string
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
	c.served = sync.OnceValue(func() []string { return st.servedListeners(p, c) })
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

// servedListeners returns the names of a router's listeners with filter chains, sorted.
func (st *state) servedListeners(p *proxy, c *routerConfig) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(c.listeners)) {
		if st.served(p, c.listeners[name]) {
			out = append(out, name)
		}
	}
	return out
}

// served reports whether a listener has a filter chain. A chain that is built can only be left out
// if its VirtualService matches destinations. The chains are built without protection, because that
// can take long and the caller may hold locks.
func (st *state) served(p *proxy, l *gatewayListener) bool {
	for c, err := range st.candidateChains(p, l, &protection{}) {
		if err != nil {
			continue
		}
		if c.of == nil || !c.of.MatchesDestinations() {
			return true
		}
		chains, _ := st.filterChains(p, l, &protection{})
		return len(chains) > 0
	}
	return false
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
