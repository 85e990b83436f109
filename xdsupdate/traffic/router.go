// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
)

// routerConfig is what Gateways make of a router: its listeners and route
// configurations by name. It is immutable.
type routerConfig struct {
	listeners map[string]*gatewayListener
	// routes are the servers that share a route configuration.
	routes map[string][]*gatewayServer
}

func newRouterConfig(listeners []*gatewayListener) *routerConfig {
	c := &routerConfig{listeners: make(map[string]*gatewayListener), routes: make(map[string][]*gatewayServer)}
	for _, l := range listeners {
		c.listeners[l.Name()] = l
		for _, s := range l.servers {
			name := s.routes
			if s.kind == plainHTTP {
				name = l.servers[0].routes // a bind of "" and of the wildcard address are one
			}
			if name != "" {
				c.routes[name] = append(c.routes[name], s)
			}
		}
	}
	return c
}

// routerOf returns what Gateways make of a router.
func (st *state) routerOf(p *proxy) *routerConfig {
	st.mu.Lock()
	defer st.mu.Unlock()
	c := st.routers[p]
	if c == nil {
		c = newRouterConfig(st.gatewayListeners(p))
		st.routers[p] = c
	}
	return c
}

// gatewayListenerNames returns the names of the listeners of a router, sorted.
func (st *state) gatewayListenerNames(p *proxy) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(st.routerOf(p).listeners)) {
		if st.gatewayListener(p, name) != nil {
			out = append(out, name)
		}
	}
	return out
}

// gatewayRouteNames returns the names of the route configurations of a router,
// sorted.
func (st *state) gatewayRouteNames(p *proxy) []string {
	return slices.Sorted(maps.Keys(st.routerOf(p).routes))
}
