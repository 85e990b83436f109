// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// object adds the resources that depend on an object.
func (c *affected) object(o objects.Object) {
	switch o := o.(type) {
	case *objects.VirtualService:
		c.virtualService(o)
	case *objects.DestinationRule:
		c.rulesFor(o.Host)
	case *objects.Gateway:
		c.gateway(o)
	case *objects.Sidecar:
		c.affect(c.after.Reach(o.Namespace), "", notRouter)
	case *objects.AuthorizationPolicy:
		c.protected(o.Namespace, &o.PolicyTarget)
		c.serverListeners(c.after.Reach(o.Namespace), func(p *proxy) bool { return c.selectsServer(o, p) })
	case *objects.PeerAuthentication:
		c.serverListeners(c.after.Reach(o.Namespace), func(*proxy) bool { return true })
		c.peersOf(o)
	case *objects.RequestAuthentication:
		c.protected(o.Namespace, &o.PolicyTarget)
	}
}

func isRouter(p *proxy) bool { return p.Role == objects.Router }

func notRouter(p *proxy) bool { return p.Role != objects.Router }

// virtualService adds the resources that a VirtualService influences. A delegate influences the
// resources of the VirtualServices that include it.
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
				c.grpcTarget(svc)
			}
		}
	}
	for _, host := range v.Hosts {
		for _, svc := range c.matching(host) {
			c.grpcTarget(svc)
		}
	}
}

// grpcTarget adds what gRPC clients have of a service that their Sidecars import only as a
// destination.
func (c *affected) grpcTarget(svc *registry.Service) {
	i := slices.IndexFunc(svc.Ports, func(p *registry.Port) bool { return p.Number == unknownHostPort })
	if i < 0 {
		return
	}
	c.add(envoy.RouteType, envoy.ClusterName(unknownHostPort, svc.Hostname), c.seeing(svc.Hostname))
	c.grpcListeners(svc.Hostname, svc.Ports[i:i+1])
}

// mesh adds the routes of sidecars and gRPC clients that a VirtualService influences.
func (c *affected) mesh(v *objects.VirtualService, why string) {
	sees := audience{why, v.Visibility, func(p *proxy) bool {
		return c.sees(p, func(_ *state, e *mesh.Egress) bool { return e.Imports(v) })
	}}
	c.add(envoy.RouteType, strconv.Itoa(unknownHostPort), sees)
	c.namedRoutes(sees)
	for _, host := range v.Hosts {
		for _, svc := range c.matching(host) {
			c.routes(svc, sees)
		}
	}
}

// gatewayOf adds the routes and listeners that a VirtualService influences at a Gateway.
func (c *affected) gatewayOf(v *objects.VirtualService, name, why string) {
	why += " at " + name // Gateways with the same port may select different routers
	for _, st := range c.states() {
		g := st.GatewayNamed(name)
		if g == nil {
			continue
		}
		routers := audience{why, v.Visibility, func(p *proxy) bool { return isRouter(p) && g.Selects(&p.Proxy) }}
		for i := range g.Spec.GetServers() {
			c.server(g, i, v, routers)
		}
	}
}

// server adds the resources that a server of a Gateway builds from a VirtualService.
func (c *affected) server(g *objects.Gateway, index int, v *objects.VirtualService, of audience) {
	spec := g.Spec.GetServers()[index]
	for _, port := range c.clients.ListeningPorts(spec.GetPort().GetNumber()) {
		s := newGatewayServer(g, index, port)
		if s == nil || !s.sharesHost(v) {
			continue
		}
		switch s.kind {
		case plainHTTP:
			// An empty bind and the wildcard address are equivalent.
			for _, bind := range []string{"", "." + s.bind, ".0.0.0.0", ".::"} {
				c.add(envoy.RouteType, fmt.Sprintf("http.%d%s", port, bind), of)
			}
		case terminatedHTTP:
			c.add(envoy.RouteType, s.routes, of)
		default:
			c.listeners(spec, port, of)
			c.chainNames(port, v, of)
		}
	}
}

// chainNames adds the route configurations of the TLS servers on a port if a VirtualService has TLS
// or TCP routes, because these routes decide which other filter chains the listener has.
func (c *affected) chainNames(port uint32, v *objects.VirtualService, of audience) {
	if len(v.Spec.GetTls())+len(v.Spec.GetTcp()) == 0 {
		return
	}
	for _, g := range c.gateways() {
		for i, spec := range g.Spec.GetServers() {
			s := newGatewayServer(g, i, port)
			if s != nil && s.kind == terminatedHTTP && slices.Contains(c.clients.ListeningPorts(spec.GetPort().GetNumber()), port) {
				c.add(envoy.RouteType, s.routes, of)
			}
		}
	}
}

// listeners adds the listeners of a server on a port.
func (c *affected) listeners(spec *networking.Server, port uint32, of audience) {
	for _, bind := range []string{canonicalBind(spec.GetBind()), "0.0.0.0", "::"} {
		c.add(envoy.ListenerType, xdsbuild.GatewayListener{Bind: bind, Port: port}.Name(), of)
	}
}

// rulesFor adds the resources that DestinationRules for a host influence. The host may be a
// wildcard. The result covers all rules for the host before and after the push, so it is added once.
func (c *affected) rulesFor(host registry.Hostname) {
	if _, again := c.ruled[host]; again {
		return
	}
	c.ruled[host] = struct{}{}
	for _, svc := range c.matching(host) {
		c.upstream(svc)
		if c.hashed(svc.Hostname) {
			c.routes(svc, everywhere("not routers", notRouter))
		}
	}
	c.leadingTo(host)
	c.passingListeners()
}

// reaches adds the resources of wildcard DestinationRules that cover a changed service, if a rule
// is limited to a part of its services. The changed service can displace another one from that
// part.
func (c *affected) reaches() {
	looked := make(map[*objects.Rule]struct{})
	for _, host := range c.services {
		for h := range c.before.Rules.HostsAbout(hostname.Lower(host)) {
			for _, m := range h.Merged {
				if _, again := looked[m]; again || !m.Of[0].Host.IsWildcard() {
					continue
				}
				looked[m] = struct{}{}
				if c.before.reachOf(m) != nil || c.after.reachOf(m) != nil {
					c.rulesFor(m.Of[0].Host)
				}
			}
		}
	}
}

// leadingTo adds the resources of VirtualServices that route to a host, which may be a wildcard, if
// they depend on the host's DestinationRules. Hash keys and TCP settings do.
func (c *affected) leadingTo(host registry.Hostname) {
	for _, st := range c.states() {
		names := []registry.Hostname{host}
		if host.IsWildcard() {
			names = slices.Collect(st.Finder.DestinationsBelow(host))
		}
		for _, name := range names {
			hashed := c.hashed(name)
			for _, alias := range mesh.Related(st.world, name) {
				for _, v := range st.Finder.LeadingTo(alias) {
					if hashed || len(v.Spec.GetTcp())+len(v.Spec.GetTls()) > 0 {
						c.virtualService(v)
					}
				}
			}
		}
	}
}

// hashed reports whether some rule for a host name has a consistent hash.
func (c *affected) hashed(name registry.Hostname) bool {
	for r := range c.rulesAbout(name) {
		if r.Hashes {
			return true
		}
	}
	return false
}

func (c *affected) gateway(g *objects.Gateway) {
	types := []string{envoy.ListenerType, envoy.RouteType}
	if g.Passes() || g.Certificate != "" || c.after.settings.options.FilterGatewayClusters {
		types = []string{""}
	}
	for _, typeURL := range types {
		c.affect("", typeURL, func(p *proxy) bool { return isRouter(p) && g.Selects(&p.Proxy) })
	}
}

// protected adds the listeners of the routers that a policy of a namespace targets.
func (c *affected) protected(namespace string, target *objects.PolicyTarget) {
	root := c.after.settings.RootNamespace()
	c.affect(c.after.Reach(namespace), envoy.ListenerType, func(p *proxy) bool {
		return isRouter(p) && target.Concerns(namespace, &p.Proxy, root)
	})
}

// passingListeners adds the listeners of Gateways with AUTO_PASSTHROUGH servers, because these have
// a filter chain for each service.
func (c *affected) passingListeners() {
	for _, g := range c.gateways() {
		if !g.Passes() {
			continue
		}
		for _, spec := range g.Spec.GetServers() {
			for _, port := range c.clients.ListeningPorts(spec.GetPort().GetNumber()) {
				c.listeners(spec, port, everywhere("", nil))
			}
		}
	}
}

// serverListeners adds the listeners of the gRPC servers in a namespace that of accepts. An empty
// namespace stands for all.
func (c *affected) serverListeners(namespace string, of func(p *proxy) bool) {
	c.affect(namespace, envoy.ListenerType, func(p *proxy) bool { return len(p.server) > 0 && of(p) })
}

// selectsServer reports whether a policy selects a server before or after the push.
func (c *affected) selectsServer(a *objects.AuthorizationPolicy, p *proxy) bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool {
		return slices.ContainsFunc(labelsOf(st.workloads.At(p.Namespace, p.server)), a.Selects)
	})
}

// serverWorkloads adds the listeners of gRPC servers with changed workloads.
func (c *affected) serverWorkloads() {
	if !c.clients.Servers() {
		return
	}
	places := c.places()
	namespaces := make(map[string]struct{})
	for at := range places {
		namespaces[at.Namespace] = struct{}{}
	}
	for namespace := range namespaces {
		c.serverListeners(namespace, func(p *proxy) bool {
			return slices.ContainsFunc(p.server, func(address string) bool {
				_, changed := places[mesh.Place{Namespace: p.Namespace, Address: address}]
				return changed
			})
		})
	}
}

// peersOf adds the clusters and load assignments of the services whose endpoints may be in a
// namespace where some workloads do not accept mutual TLS, before or after the push.
func (c *affected) peersOf(a *objects.PeerAuthentication) {
	reach := c.after.Reach(a.Namespace)
	for _, st := range c.states() {
		for _, services := range st.world.Hosts() {
			for _, svc := range services {
				if c.mayTakePlaintext(svc, reach) {
					c.upstream(svc)
				}
			}
		}
	}
}

// mayTakePlaintext reports whether PeerAuthentications for a namespace may disable mutual TLS of
// endpoints of a service. An empty namespace stands for all.
func (c *affected) mayTakePlaintext(svc *registry.Service, namespace string) bool {
	own := svc.Attributes.Namespace
	return slices.ContainsFunc(c.states(), func(st *state) bool {
		if st.world.Endpoints(svc).Foreign() {
			return st.AnyDisabled()
		}
		return (namespace == "" || own == namespace) && st.SomeDisabled(own)
	})
}

// imports adds all resources of proxies whose Sidecars may exceed the limit of imports before or
// after the push, because a changed service may displace others.
func (c *affected) imports() {
	if len(c.services) == 0 {
		return
	}
	for key, b := range c.before.scopeBases() {
		if b.Listeners > 1 && exceeds(b.Imports+b.Listeners*len(c.services), c.after.settings.limits.Imports) {
			c.affect(key.namespace, "", notRouter)
		}
	}
	if c.before.forgotScopes() {
		c.possibleImports()
	}
}

// possibleImports is imports for all Sidecars, whose imports are not known and count as all services.
func (c *affected) possibleImports() {
	all := c.before.world.Len() + len(c.services)
	for _, list := range c.before.Sidecars.All() {
		for _, s := range list {
			if n := len(s.Listeners()); n > 1 && exceeds(n*all, c.after.settings.limits.Imports) {
				c.affect(c.after.Reach(s.Namespace), "", notRouter)
			}
		}
	}
}
