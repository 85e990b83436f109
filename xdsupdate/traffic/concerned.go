// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// concerned collects the resources that a push may change. More than those that do
// change costs work, and is not sent; less is a mistake. In short:
//
//	endpoints of a host   its assignments; its clusters, if they have endpoints or
//	                      identities in them
//	services of a host    its clusters and assignments, the routes of its ports, its
//	                      gRPC listeners, and what VirtualServices say of it
//	a VirtualService      the routes of the ports of its hosts, and of its Gateways
//	a DestinationRule     clusters and assignments of its hosts; routes, if a hash
//	                      needs keys
//	a Gateway             listeners and routes of the routers that it selects
//	a Sidecar             everything of the proxies that may use it
type concerned struct {
	*difference
	names []ads.ChangedName
	seen  map[concernedKey]struct{}
	// routers and sidecars accept the views of which more than names have changed.
	everything []func(p *proxy, typeURL string) bool
}

type concernedKey struct{ typeURL, name, why string }

func newConcerned(d *difference) *concerned {
	c := &concerned{difference: d, seen: make(map[concernedKey]struct{})}
	for _, host := range d.endpoints {
		c.endpointsOf(host)
	}
	for _, host := range d.services {
		c.servicesOf(host)
	}
	for _, o := range d.objects {
		c.virtualServices(o.before.virtualService, o.after.virtualService)
		c.rules(o.before.destinationRule, o.after.destinationRule)
		c.gateways(o.before.gateway, o.after.gateway)
		c.sidecars(o.before.sidecar, o.after.sidecar)
	}
	return c
}

// add adds a resource. Why identifies the views, nil: all.
func (c *concerned) add(typeURL, name, why string, in func(ads.View) bool) {
	key := concernedKey{typeURL, name, why}
	if _, again := c.seen[key]; !again {
		c.seen[key] = struct{}{}
		c.names = append(c.names, ads.ChangedName{TypeURL: typeURL, Name: name, In: in})
	}
}

// states are those before and after the push.
func (c *concerned) states() []*state { return []*state{c.before, c.after} }

// services returns the services of a name before and after the push.
func (c *concerned) servicesNamed(name registry.Hostname) []*registry.Service {
	return slices.Concat(c.before.world.named(name), c.after.world.named(name))
}

// matching returns the services of a host, which may be a wildcard, before and
// after.
func (c *concerned) matching(host registry.Hostname) []*registry.Service {
	if !host.IsWildcard() {
		return c.servicesNamed(host)
	}
	var out []*registry.Service
	for _, st := range c.states() {
		for name, services := range hostsOf(st.world) {
			if name.SubsetOf(host) {
				out = append(out, services...)
			}
		}
	}
	return out
}

func (c *concerned) endpointsOf(host registry.Hostname) {
	for _, svc := range c.servicesNamed(host) {
		c.clusters(svc, envoy.LoadAssignmentType)
		if svc.Resolution.IsDNS() || !slices.Equal(c.identities(c.before, svc), c.identities(c.after, svc)) {
			c.clusters(svc, envoy.ClusterType)
		}
	}
}

func (c *concerned) identities(st *state, svc *registry.Service) []string {
	return st.world.endpoints(svc.Hostname, svc.Attributes.Namespace).ServiceAccounts()
}

func (c *concerned) servicesOf(host registry.Hostname) {
	for _, svc := range c.servicesNamed(host) {
		c.clusters(svc, envoy.ClusterType)
		c.clusters(svc, envoy.LoadAssignmentType)
		c.routes(svc, "service "+string(host), func(p *proxy) bool { return c.seesService(p, host) })
		c.grpcListeners(svc)
	}
	for _, st := range c.states() {
		for _, name := range slices.Concat([]registry.Hostname{host}, slices.Collect(wildcardsOf(host))) {
			for _, v := range st.finder.withHost(name) {
				c.virtualService(v)
			}
		}
		for _, v := range st.finder.leadingTo(host) {
			c.virtualService(v)
		}
	}
	c.passingListeners()
}

// clusters adds the clusters of all ports and subsets of a service, or their
// assignments.
func (c *concerned) clusters(svc *registry.Service, typeURL string) {
	subsets := []string{""}
	for _, st := range c.states() {
		for r := range st.rules.about(lower(svc.Hostname)) {
			for _, s := range r.spec.GetSubsets() {
				subsets = append(subsets, s.GetName())
			}
		}
	}
	for _, port := range svc.Ports {
		for _, subset := range subsets {
			c.add(typeURL, envoy.SubsetClusterName(port.Number, subset, svc.Hostname), "", nil)
			if c.passes() {
				c.add(typeURL, envoy.SNIName(port.Number, subset, svc.Hostname), "", nil)
			}
		}
	}
}

// routes adds the route configurations that have a service, for some proxies.
func (c *concerned) routes(svc *registry.Service, why string, in func(p *proxy) bool) {
	views := func(v ads.View) bool { return in(proxyOf(v)) }
	for _, port := range svc.Ports {
		c.add(envoy.RouteType, envoy.HTTPRouteName(port.Number), why, views)
		c.add(envoy.RouteType, envoy.ListenerName(port.Number, svc.Hostname), why, views)
		c.add(envoy.RouteType, envoy.ClusterName(port.Number, svc.Hostname), why, views)
	}
	c.namedRoutes(why, views)
}

// namedRoutes adds the route configurations of listeners of Sidecars that have all
// ports.
func (c *concerned) namedRoutes(why string, views func(ads.View) bool) {
	for _, st := range c.states() {
		for _, list := range st.sidecars {
			for _, s := range list {
				for _, l := range s.listeners() {
					if e := (&egress{listener: l}); e.named() {
						c.add(envoy.RouteType, e.routeName(), why, views)
					}
				}
			}
		}
	}
}

// seesService reports whether a proxy sees a service of a name, before or after.
func (c *concerned) seesService(p *proxy, host registry.Hostname) bool {
	if p.role == router {
		return false // what their routes have of services is what VirtualServices say
	}
	for _, st := range c.states() {
		for _, e := range st.sidecarOf(p).imports(st.index, p.namespace) {
			if e.choose(st.world.named(host)) != nil {
				return true
			}
		}
	}
	return false
}

// imports returns the listeners of a Sidecar, or of none, without what they see.
func (s *sidecar) imports(x *index, namespace string) []*egress {
	var out []*egress
	for _, l := range s.listeners() {
		e := &egress{index: x, namespace: namespace, listener: l}
		if l != nil {
			e.hosts = newEgressHosts(l.GetHosts(), namespace)
		}
		out = append(out, e)
	}
	return out
}

// grpcListeners adds the listeners by which gRPC clients find a service: by all its
// names, with and without port.
func (c *concerned) grpcListeners(svc *registry.Service) {
	names := []string{string(svc.Hostname)}
	if lowered := string(lower(svc.Hostname)); lowered != names[0] {
		names = append(names, lowered)
	}
	// Clients of the namespace that is in the name can leave that out.
	_, rest, _ := strings.Cut(string(lower(svc.Hostname)), ".")
	namespace, _, _ := strings.Cut(rest, ".")
	_, short := serviceNames(lower(svc.Hostname), namespace, c.after.settings.domain())
	for _, name := range append(names, short...) {
		c.add(envoy.ListenerType, name, "", nil)
		for _, port := range svc.Ports {
			c.add(envoy.ListenerType, envoy.ListenerName(port.Number, registry.Hostname(name)), "", nil)
		}
	}
}

func (c *concerned) virtualServices(changed ...*virtualService) {
	for _, v := range changed {
		switch {
		case v == nil:
		case v.delegate():
			for _, st := range c.states() {
				for _, root := range st.finder.roots(v.objectName) {
					c.virtualService(root)
				}
			}
		default:
			c.virtualService(v)
		}
	}
}

// virtualService adds what a VirtualService is about.
func (c *concerned) virtualService(v *virtualService) {
	why := fmt.Sprintf("VirtualService %s %p", v, v)
	if _, again := c.seen[concernedKey{why: why}]; again {
		return
	}
	c.seen[concernedKey{why: why}] = struct{}{}
	for _, g := range v.gateways {
		if g == meshGateway {
			c.mesh(v, why)
		} else {
			c.gatewayOf(v, g, why)
		}
	}
	if len(c.before.sidecars)+len(c.after.sidecars) == 0 && !c.after.settings.filterGatewayClusters {
		return
	}
	for _, st := range c.states() { // they decide which clusters there are
		for host := range st.destinationsOf(v) {
			for _, svc := range c.servicesNamed(host) {
				c.clusters(svc, envoy.ClusterType)
				c.clusters(svc, envoy.LoadAssignmentType)
			}
		}
	}
}

// mesh adds the routes of sidecars and gRPC clients that a VirtualService is about.
func (c *concerned) mesh(v *virtualService, why string) {
	sees := func(p *proxy) bool { return c.seesVirtualService(p, v) }
	views := func(view ads.View) bool { return sees(proxyOf(view)) }
	c.add(envoy.RouteType, strconv.Itoa(unknownHostPort), why, views)
	c.namedRoutes(why, views)
	for _, host := range v.hosts {
		for _, svc := range c.matching(host) {
			c.routes(svc, why, sees)
		}
	}
}

// seesVirtualService reports whether a proxy of the mesh sees a VirtualService.
func (c *concerned) seesVirtualService(p *proxy, v *virtualService) bool {
	if p.role == router || !v.visibility.in(p.namespace) {
		return false
	}
	for _, st := range c.states() {
		if slices.ContainsFunc(st.sidecarOf(p).imports(st.index, p.namespace), func(e *egress) bool { return e.imports(v) }) {
			return true
		}
	}
	return false
}

// gatewayOf adds the routes and listeners of a Gateway that a VirtualService is
// about.
func (c *concerned) gatewayOf(v *virtualService, name, why string) {
	for _, st := range c.states() {
		for _, g := range st.gateways {
			if g.String() != name {
				continue
			}
			views := func(view ads.View) bool {
				p := proxyOf(view)
				return p.role == router && g.selects(p.labels) && v.visibility.in(p.namespace)
			}
			for _, spec := range g.spec.GetServers() {
				c.server(g, spec, v, why, views)
			}
		}
	}
}

// server adds what a server of a Gateway has of a VirtualService.
func (c *concerned) server(g *gateway, spec *networking.Server, v *virtualService, why string, views func(ads.View) bool) {
	for _, port := range c.targets.ports(spec.GetPort().GetNumber()) {
		s := newGatewayServer(g, spec, port)
		if s == nil || len(s.hostsOf(v)) == 0 {
			continue
		}
		switch s.kind {
		case plainHTTP:
			// A bind of "" and of the wildcard address are one.
			for _, bind := range []string{"", "." + spec.GetBind(), ".0.0.0.0", ".::"} {
				c.add(envoy.RouteType, fmt.Sprintf("http.%d%s", port, bind), why, views)
			}
		case terminatedHTTP:
			c.add(envoy.RouteType, s.routes, why, views)
		default:
			c.listeners(spec, port, why, views)
		}
	}
}

// listeners adds the listeners of a server on a port.
func (c *concerned) listeners(spec *networking.Server, port uint32, why string, views func(ads.View) bool) {
	for _, bind := range []string{spec.GetBind(), "0.0.0.0", "::"} {
		c.add(envoy.ListenerType, envoy.GatewayListener{Bind: bind, Port: port}.Name(), why, views)
	}
}

// passes reports whether some Gateway passes connections on by their server names.
func (c *concerned) passes() bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool { return slices.ContainsFunc(st.gateways, (*gateway).passes) })
}

// passes reports whether a server passes connections on by their server names.
func (g *gateway) passes() bool {
	return slices.ContainsFunc(g.spec.GetServers(), func(s *networking.Server) bool {
		return s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
	})
}

// passingListeners adds the listeners that have a filter chain for each service.
func (c *concerned) passingListeners() {
	for _, st := range c.states() {
		for _, g := range st.gateways {
			if !g.passes() {
				continue
			}
			for _, spec := range g.spec.GetServers() {
				for _, port := range c.targets.ports(spec.GetPort().GetNumber()) {
					c.listeners(spec, port, "", nil)
				}
			}
		}
	}
}

func (c *concerned) rules(changed ...*destinationRule) {
	for _, r := range changed {
		if r == nil {
			continue
		}
		for _, svc := range c.matching(r.host) {
			c.clusters(svc, envoy.ClusterType)
			c.clusters(svc, envoy.LoadAssignmentType)
			if c.hashed(lower(svc.Hostname)) {
				c.routes(svc, "DestinationRule "+r.String(), func(p *proxy) bool { return p.role != router })
			}
		}
		c.leadingTo(r.host)
		c.passingListeners()
	}
}

// leadingTo adds what VirtualServices say of a host, which may be a wildcard, if
// that depends on the rules for it: keys of hashes, and TCP settings.
func (c *concerned) leadingTo(host registry.Hostname) {
	for _, st := range c.states() {
		names := []registry.Hostname{host}
		if host.IsWildcard() {
			names = nil
			for key := range st.finder.lists.All() {
				if name := registry.Hostname(key.name); key.by == byDestination && name.SubsetOf(host) {
					names = append(names, name)
				}
			}
		}
		for _, name := range names {
			hashed := c.hashed(name)
			for _, v := range st.finder.leadingTo(name) {
				if hashed || len(v.spec.GetTcp())+len(v.spec.GetTls()) > 0 {
					c.virtualService(v)
				}
			}
		}
	}
}

// hashed reports whether some rule for a host name has a consistent hash.
func (c *concerned) hashed(name registry.Hostname) bool {
	for _, st := range c.states() {
		for r := range st.rules.about(name) {
			if hashes(r.spec) {
				return true
			}
		}
	}
	return false
}

func hashes(r *networking.DestinationRule) bool {
	policy := func(p *networking.TrafficPolicy) bool {
		return p.GetLoadBalancer().GetConsistentHash() != nil ||
			slices.ContainsFunc(p.GetPortLevelSettings(), func(port *networking.TrafficPolicy_PortTrafficPolicy) bool {
				return port.GetLoadBalancer().GetConsistentHash() != nil
			})
	}
	return policy(r.GetTrafficPolicy()) ||
		slices.ContainsFunc(r.GetSubsets(), func(s *networking.Subset) bool { return policy(s.GetTrafficPolicy()) })
}

func (c *concerned) gateways(changed ...*gateway) {
	for _, g := range changed {
		if g == nil {
			continue
		}
		clusters := g.passes() || c.after.settings.filterGatewayClusters
		c.everything = append(c.everything, func(p *proxy, typeURL string) bool {
			return p.role == router && g.selects(p.labels) &&
				(clusters || typeURL == envoy.ListenerType || typeURL == envoy.RouteType)
		})
	}
}

func (c *concerned) sidecars(changed ...*sidecar) {
	for _, s := range changed {
		if s == nil {
			continue
		}
		root := s.namespace == c.after.settings.rootNamespace()
		c.everything = append(c.everything, func(p *proxy, _ string) bool {
			return p.role != router && (root || p.namespace == s.namespace)
		})
	}
}

// changes returns what the server has to know.
func (c *concerned) changes() ads.Changes {
	out := ads.Changes{Names: c.names}
	if len(c.everything) > 0 {
		out.Everything = func(v ads.View, typeURL string) bool {
			p := proxyOf(v)
			return slices.ContainsFunc(c.everything, func(is func(*proxy, string) bool) bool { return is(p, typeURL) })
		}
	}
	return out
}
