// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// affected collects the resources that a push may change. A collected resource that turns out equal
// costs work and is not sent. A resource that changes without being collected is a bug. In short:
//
//	endpoints of a host     its load assignments; its clusters, if they contain endpoints or
//	                        identities, or mutual TLS because endpoints accept it
//	services of a host      its clusters and load assignments, the routes of its ports, its gRPC
//	                        listeners, and the resources of VirtualServices that reference the host
//	VirtualService          the routes of the ports of its hosts, and of its Gateways
//	DestinationRule         clusters and load assignments of its hosts; routes, if a consistent hash
//	                        needs keys
//	Gateway                 listeners and routes of the routers that it selects
//	Sidecar                 all resources of the proxies that may use it
//	AuthorizationPolicy     the listeners of the routers and gRPC servers that it applies to
//	RequestAuthentication   the listeners of the routers that it applies to
//	PeerAuthentication      the listeners of gRPC servers of its namespace; clusters and load
//	                        assignments of its services, if some workloads do not accept mutual TLS
type affected struct {
	*difference
	names []ads.ChangedName
	seen  map[affectedKey]struct{}
	// seenIn keeps the namespaces of seeing.
	seenIn map[registry.Hostname]objects.Visibility
	// ruled contains the hosts whose DestinationRules have been processed.
	ruled map[registry.Hostname]struct{}
	// everything selects the proxies and types whose resources may all have changed.
	everything []affectedProxies
}

// affectedProxies selects proxies whose resources of a type may all have changed. An empty
// namespace stands for all namespaces, and an empty type for all types.
type affectedProxies struct {
	namespace, typeURL string // empty means any
	are                func(p *proxy) bool
}

type affectedKey struct{ typeURL, name, why string }

// audience is a set of proxies.
type audience struct {
	// why identifies the set.
	why string
	// in has the namespaces of the proxies.
	in objects.Visibility
	// are accepts the proxies; nil accepts all.
	are func(p *proxy) bool
}

// everywhere returns the proxies of all namespaces that are accepts.
func everywhere(why string, are func(p *proxy) bool) audience {
	return audience{why, objects.Visibility{Public: true}, are}
}

func newAffected(d *difference) *affected {
	c := &affected{
		difference: d, seen: make(map[affectedKey]struct{}), seenIn: make(map[registry.Hostname]objects.Visibility),
		ruled: make(map[registry.Hostname]struct{}),
	}
	for _, host := range d.endpoints {
		c.endpointsOf(host)
	}
	for _, host := range d.services {
		c.servicesOf(host)
	}
	c.reaches()
	c.imports()
	for _, o := range d.objects {
		for _, revision := range o.Revisions() {
			c.object(revision)
		}
	}
	c.serverWorkloads()
	return c
}

// add adds a resource for an audience.
func (c *affected) add(typeURL, name string, of audience) {
	key := affectedKey{typeURL, name, of.why}
	if _, again := c.seen[key]; again {
		return
	}
	c.seen[key] = struct{}{}
	changed := ads.ChangedName{TypeURL: typeURL, Name: name}
	if !of.in.Public {
		changed.Namespaces = append([]string{}, of.in.Namespaces...)
	}
	if of.are != nil {
		changed.In = func(v ads.View) bool { return of.are(proxyOf(v)) }
	}
	c.names = append(c.names, changed)
}

// seeing returns the proxies that may have resources of a host, because they see one of its services
// before or after the push.
func (c *affected) seeing(host registry.Hostname) audience {
	in, known := c.seenIn[host]
	if !known {
		for _, st := range c.states() {
			for _, svc := range st.world.Named(host) {
				in = in.Or(st.settings.Reach(svc))
			}
		}
		c.seenIn[host] = in
	}
	return audience{why: "host " + string(host), in: in}
}

// affect adds all resources of a type for the proxies of a namespace that are accepts. An empty
// namespace or type stands for all.
func (c *affected) affect(namespace, typeURL string, are func(p *proxy) bool) {
	c.everything = append(c.everything, affectedProxies{namespace, typeURL, are})
}

// states returns the states before and after the push, or one if they differ only in endpoints.
func (c *affected) states() []*state {
	if c.before.computed == c.after.computed {
		return []*state{c.after}
	}
	return []*state{c.before, c.after}
}

// servicesNamed returns the services with a host name, before and after the push.
func (c *affected) servicesNamed(name registry.Hostname) (out []*registry.Service) {
	for _, st := range c.states() {
		out = append(out, st.world.Named(name)...)
	}
	return out
}

// rulesAbout yields the DestinationRules that cover a host name, before and after the push.
func (c *affected) rulesAbout(name registry.Hostname) iter.Seq[*objects.DestinationRule] {
	return func(yield func(*objects.DestinationRule) bool) {
		for _, st := range c.states() {
			for r := range st.Rules.About(hostname.Lower(name)) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// gateways returns the Gateways before and after the push.
func (c *affected) gateways() (out []*objects.Gateway) {
	for _, st := range c.states() {
		out = append(out, st.Gateways...)
	}
	return out
}

// matching returns the services of a host, which may be a wildcard, before and after the push.
func (c *affected) matching(host registry.Hostname) (out []*registry.Service) {
	for _, st := range c.states() {
		out = slices.AppendSeq(out, st.servicesOf(host))
	}
	return out
}

// upstream adds the clusters and load assignments of a service.
func (c *affected) upstream(svc *registry.Service) {
	c.clusters(svc, envoy.ClusterType)
	c.clusters(svc, envoy.LoadAssignmentType)
}

func (c *affected) endpointsOf(host registry.Hostname) {
	for _, svc := range c.servicesNamed(host) {
		c.clusters(svc, envoy.LoadAssignmentType)
		if svc.Resolution.IsDNS() || c.passesThrough(svc) || c.secured(svc) {
			c.clusters(svc, envoy.ClusterType)
		}
	}
}

// secured reports whether the transport security of the service's clusters changes, because its
// endpoints have other identities or because their support of mutual TLS has changed.
func (c *affected) secured(svc *registry.Service) bool {
	before, after := c.before.world.Endpoints(svc), c.after.world.Endpoints(svc)
	return before.MutualTLS() != after.MutualTLS() || !slices.Equal(before.ServiceAccounts(), after.ServiceAccounts())
}

// passesThrough reports whether clusters of the service may forward connections to their original
// destination before or after the push, either by the service's resolution or by a DestinationRule.
func (c *affected) passesThrough(svc *registry.Service) bool {
	for r := range c.rulesAbout(svc.Hostname) {
		if r.Passes {
			return true
		}
	}
	return svc.Resolution == registry.Passthrough
}

// servicesOf adds the resources that services of a host influence. Aliases of the host, and the hosts
// that it is an alias of, share its clusters, routes and gRPC listeners under all their names.
func (c *affected) servicesOf(host registry.Hostname) {
	sees := audience{"service " + string(host), c.seeing(host).in, func(p *proxy) bool { return c.seesService(p, host) }}
	names := mesh.RelatedIn(host, c.before.world, c.after.world)
	for _, name := range names {
		for _, svc := range c.servicesNamed(name) {
			c.upstream(svc)
			c.routes(svc, sees)
			c.grpcListeners(svc.Hostname, svc.Ports)
			for _, other := range names {
				c.grpcListeners(other, svc.Ports)
			}
		}
		for _, st := range c.states() {
			for _, v := range st.Finder.LeadingTo(name) {
				c.virtualService(v)
			}
		}
	}
	for _, st := range c.states() {
		// A VirtualService host without a service has virtual hosts on ports that the service does
		// not have. A wildcard host has virtual hosts on each port where it covers no service,
		// independently of other ports.
		for _, v := range st.Finder.WithHost(host) {
			c.virtualService(v)
		}
	}
	c.passingListeners()
	if c.after.settings.isAuthorizer(host) {
		c.affect("", envoy.ListenerType, isRouter)
	}
}

// clusters adds the clusters, or the load assignments, of all ports and subsets of a service.
func (c *affected) clusters(svc *registry.Service, typeURL string) {
	subsets := []string{""}
	for r := range c.rulesAbout(svc.Hostname) {
		for _, s := range r.Spec.GetSubsets() {
			subsets = append(subsets, s.GetName())
		}
	}
	seeing := c.seeing(svc.Hostname)
	passes := slices.ContainsFunc(c.gateways(), (*objects.Gateway).Passes)
	for _, port := range svc.Ports {
		for _, subset := range subsets {
			c.add(typeURL, envoy.SubsetClusterName(port.Number, subset, svc.Hostname), seeing)
			if passes {
				c.add(typeURL, envoy.SNIName(port.Number, subset, svc.Hostname), seeing)
			}
		}
	}
}

// routes adds the route configurations that contain a service, for an audience.
func (c *affected) routes(svc *registry.Service, of audience) {
	for _, port := range svc.Ports {
		c.add(envoy.RouteType, envoy.HTTPRouteName(port.Number), of)
		c.add(envoy.RouteType, envoy.ListenerName(port.Number, svc.Hostname), of)
		c.add(envoy.RouteType, envoy.ClusterName(port.Number, svc.Hostname), of)
	}
	c.namedRoutes(of)
}

// namedRoutes adds the route configurations of Sidecar listeners that serve all ports.
func (c *affected) namedRoutes(of audience) {
	for _, st := range c.states() {
		for _, list := range st.Sidecars.All() {
			for _, s := range list {
				for _, l := range s.Listeners() {
					if e := (&mesh.Egress{Listener: l}); e.Named() {
						c.add(envoy.RouteType, e.RouteName(), of)
					}
				}
			}
		}
	}
}

// sees reports whether a sidecar or gRPC client has an egress listener, before or after the push,
// that does. Routes of routers reference services only through VirtualServices.
func (c *affected) sees(p *proxy, does func(st *state, e *mesh.Egress) bool) bool {
	return p.Role != objects.Router && slices.ContainsFunc(c.states(), func(st *state) bool {
		return slices.ContainsFunc(st.SidecarOf(&p.Proxy).Listeners(), func(l *networking.IstioEgressListener) bool {
			return does(st, &mesh.Egress{Index: st.Index, Namespace: p.Namespace, Listener: l, Hosts: mesh.NewEgressHosts(l.GetHosts(), p.Namespace)})
		})
	})
}

// seesService reports whether a sidecar or gRPC client sees a service with a host name.
func (c *affected) seesService(p *proxy, host registry.Hostname) bool {
	return c.sees(p, func(st *state, e *mesh.Egress) bool { return e.Choose(st.world.Named(host)) != nil })
}

// grpcListeners adds the listeners under which gRPC clients find a host, with and without a port.
func (c *affected) grpcListeners(host registry.Hostname, ports []*registry.Port) {
	// Clients in the namespace that is part of the name may omit the namespace.
	_, rest, _ := strings.Cut(string(hostname.Lower(host)), ".")
	namespace, _, _ := strings.Cut(rest, ".")
	seeing := c.seeing(host)
	_, short := serviceNames(host, namespace, c.after.settings.Domain)
	for _, name := range append(short, string(host)) {
		c.add(envoy.ListenerType, name, seeing)
		for _, port := range ports {
			c.add(envoy.ListenerType, envoy.ListenerName(port.Number, registry.Hostname(name)), seeing)
		}
	}
}

// changes returns the changed resources for the server.
func (c *affected) changes() ads.Changes {
	out := ads.Changes{Names: c.names}
	if len(c.everything) == 0 {
		return out
	}
	out.Namespaces = make(map[string]struct{})
	for _, a := range c.everything {
		out.Namespaces[a.namespace] = struct{}{}
	}
	if _, all := out.Namespaces[""]; all {
		out.Namespaces = nil
	}
	out.Everything = func(v ads.View, typeURL string) bool {
		var p *proxy // computed lazily, because comparing namespaces is cheaper
		return slices.ContainsFunc(c.everything, func(a affectedProxies) bool {
			if a.namespace != "" && a.namespace != v.Namespace || a.typeURL != "" && a.typeURL != typeURL {
				return false
			}
			if p == nil {
				p = proxyOf(v)
			}
			return a.are(p)
		})
	}
	return out
}
