// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// virtualService adds the resources that a VirtualService influences. A delegate influences those of
// the VirtualServices that include it.
func (c *affected) virtualService(v *objects.VirtualService) {
	if v.Delegate() {
		for _, st := range c.states() {
			for _, root := range st.Finder.Roots(v.ObjectName) {
				c.virtualService(root)
			}
		}
		return
	}
	why := fmt.Sprintf("VirtualService %s %p", v, v)
	if _, again := c.seen[affectedKey{why: why}]; again {
		return
	}
	c.seen[affectedKey{why: why}] = struct{}{}
	for _, g := range v.Gateways {
		if g == objects.MeshGateway {
			c.mesh(v, why)
		} else {
			c.gatewayOf(v, g, why)
		}
	}
	if c.before.Sidecars.Len()+c.after.Sidecars.Len() == 0 && !c.after.settings.options.FilterGatewayClusters {
		return
	}
	for _, st := range c.states() { // VirtualServices determine which clusters proxies have
		for host := range st.DestinationsOf(v) {
			for _, svc := range c.servicesNamed(host) {
				c.upstream(svc)
			}
		}
	}
}

// mesh adds the routes of sidecars and gRPC clients that a VirtualService influences.
func (c *affected) mesh(v *objects.VirtualService, why string) {
	sees := func(p *proxy) bool { return c.seesVirtualService(p, v) }
	views := func(view ads.View) bool { return sees(proxyOf(view)) }
	c.add(envoy.RouteType, strconv.Itoa(unknownHostPort), why, views)
	c.namedRoutes(why, views)
	for _, host := range v.Hosts {
		for _, svc := range c.matching(host) {
			c.routes(svc, why, sees)
		}
	}
}

// seesVirtualService reports whether a sidecar or gRPC client sees a VirtualService.
func (c *affected) seesVirtualService(p *proxy, v *objects.VirtualService) bool {
	if p.Role == objects.Router || !v.Visibility.In(p.Namespace) {
		return false
	}
	for _, st := range c.states() {
		if slices.ContainsFunc(importsOf(st, p), func(e *mesh.Egress) bool { return e.Imports(v) }) {
			return true
		}
	}
	return false
}

// gatewayOf adds the routes and listeners that a VirtualService influences at a Gateway.
func (c *affected) gatewayOf(v *objects.VirtualService, name, why string) {
	why += " at " + name // Gateways with the same port may select different routers
	for _, st := range c.states() {
		g := st.GatewayNamed(name)
		if g == nil {
			continue
		}
		views := func(view ads.View) bool {
			p := proxyOf(view)
			return p.Role == objects.Router && g.Selects(&p.Proxy) && v.Visibility.In(p.Namespace)
		}
		for i := range g.Spec.GetServers() {
			c.server(g, i, v, why, views)
		}
	}
}

// server adds the resources that a server of a Gateway builds from a VirtualService.
func (c *affected) server(g *objects.Gateway, index int, v *objects.VirtualService, why string, views func(ads.View) bool) {
	spec := g.Spec.GetServers()[index]
	for _, port := range c.clients.ports(spec.GetPort().GetNumber()) {
		s := newGatewayServer(g, index, port)
		if s == nil || !s.sharesHost(v) {
			continue
		}
		switch s.kind {
		case plainHTTP:
			// An empty bind and the wildcard address are equivalent.
			for _, bind := range []string{"", "." + s.bind, ".0.0.0.0", ".::"} {
				c.add(envoy.RouteType, fmt.Sprintf("http.%d%s", port, bind), why, views)
			}
		case terminatedHTTP:
			c.add(envoy.RouteType, s.routes, why, views)
		default:
			c.listeners(spec, port, why, views)
			c.chainNames(port, v, why, views)
		}
	}
}

// chainNames adds the route configurations of the TLS servers on a port if a VirtualService has TLS
// or TCP routes, because these routes decide which other filter chains the listener has.
func (c *affected) chainNames(port uint32, v *objects.VirtualService, why string, views func(ads.View) bool) {
	if len(v.Spec.GetTls())+len(v.Spec.GetTcp()) == 0 {
		return
	}
	for _, st := range c.states() {
		for _, g := range st.Gateways {
			for i, spec := range g.Spec.GetServers() {
				s := newGatewayServer(g, i, port)
				if s != nil && s.kind == terminatedHTTP && slices.Contains(c.clients.ports(spec.GetPort().GetNumber()), port) {
					c.add(envoy.RouteType, s.routes, why, views)
				}
			}
		}
	}
}

// listeners adds the listeners of a server on a port.
func (c *affected) listeners(spec *networking.Server, port uint32, why string, views func(ads.View) bool) {
	for _, bind := range []string{canonicalBind(spec.GetBind()), "0.0.0.0", "::"} {
		c.add(envoy.ListenerType, xdsbuild.GatewayListener{Bind: bind, Port: port}.Name(), why, views)
	}
}
