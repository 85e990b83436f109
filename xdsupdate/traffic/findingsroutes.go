// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) virtualService(v *objects.VirtualService) func() []Effect {
	if v.Delegate() {
		return f.delegate(v)
	}
	var effects []Effect
	for i, name := range v.Gateways {
		if name == objects.MeshGateway {
			effects = append(effects, f.meshHosts(v)...)
		} else if reason := f.whyNotServed(v, name); reason != "" {
			f.add(objects.Element("spec.gateways", i), "%s", reason)
		} else {
			effects = append(effects, Effect{"routers of Gateway " + name, "connections and requests to " + joinHosts(v.Hosts)})
		}
	}
	if len(effects) == 0 {
		f.add("", "no gateway or sidecar serves any of its hosts by it")
		return nil
	}
	if onlyMesh := slices.Equal(v.Gateways, []string{objects.MeshGateway}); onlyMesh {
		if len(v.Spec.GetTcp()) > 0 {
			f.add("spec.tcp", "only gateways are configured for TCP routes")
		}
		if len(v.Spec.GetTls()) > 0 {
			f.add("spec.tls", "only gateways are configured for TLS routes")
		}
	}
	f.rules(v)
	f.l4Sources(v)
	return func() []Effect { return effects }
}

func joinHosts(hosts []registry.Hostname) string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = string(h)
	}
	return strings.Join(out, ", ")
}

// meshHosts adds findings for the hosts of a VirtualService that have no effect on sidecars and
// gRPC clients. It returns the effects of other hosts.
func (f *findings) meshHosts(v *objects.VirtualService) (effects []Effect) {
	if len(v.Spec.GetHttp()) == 0 {
		return nil
	}
	for i, host := range v.Hosts {
		field, clients := objects.Element("spec.hosts", i), "sidecars and gRPC clients"
		switch by := f.shadowing(v, host); {
		case by != nil:
			f.add(field, "VirtualService %s has this host too and is older", by)
			continue
		case f.aliased(host) != "":
			f.add(field, "it is another name for %s, whose policies count", f.aliased(host))
			continue
		case !f.some(host, anyService):
			f.add(field, "no service has this host name; only sidecars serve it, on port %d", unknownHostPort)
			clients = "sidecars"
		}
		effects = append(effects, Effect{clients + " of " + v.Visibility.String(), "requests to " + string(host)})
	}
	return effects
}

// shadowing returns an older VirtualService that takes precedence for a host wherever this one
// applies, or nil.
func (f *findings) shadowing(v *objects.VirtualService, host registry.Hostname) *objects.VirtualService {
	for _, older := range f.Finder.WithHost(host) {
		if older == v {
			return nil
		}
		if !older.BoundTo(objects.MeshGateway) {
			continue
		}
		alike := older.Visibility.Public && v.Visibility.Public ||
			older.Namespace == v.Namespace && older.Visibility.Equal(v.Visibility)
		if alike && routesEverywhere(f.RulesOf(older)) {
			return older
		}
	}
	return nil
}

// routesEverywhere reports whether some rule applies to every port and every client of the mesh.
func routesEverywhere(rules []*networking.HTTPRoute) bool {
	unrestricted := func(m *networking.HTTPMatchRequest) bool {
		return m.GetPort() == 0 && len(m.GetSourceLabels()) == 0 && m.GetSourceNamespace() == "" && len(m.GetGateways()) == 0
	}
	return slices.ContainsFunc(rules, func(r *networking.HTTPRoute) bool {
		return len(r.GetMatch()) == 0 || slices.ContainsFunc(r.GetMatch(), unrestricted)
	})
}

// whyNotServed returns the reason why a VirtualService has no effect on the servers of a Gateway.
// It is empty if it has one.
func (f *findings) whyNotServed(v *objects.VirtualService, name string) string {
	g := f.GatewayNamed(name)
	if g == nil {
		return "there is no Gateway " + name
	}
	common := false
	for i, spec := range g.Spec.GetServers() {
		s := newGatewayServer(g, i, spec.GetPort().GetNumber())
		if s == nil || !s.sharesHost(v) {
			continue
		}
		if common = true; s.takes(v) {
			return ""
		}
	}
	if !common {
		return "no server of Gateway " + name + " has one of the hosts"
	}
	return "no server of Gateway " + name + " with one of the hosts takes routes of these kinds"
}

// rules adds findings for the rules of a VirtualService without a reachable destination or
// delegate.
func (f *findings) rules(v *objects.VirtualService) {
	for i, r := range v.Spec.GetHttp() {
		rule, use := objects.Element("spec.http", i), used(v, r.GetMatch(), func(k serverKind) bool { return k == plainHTTP || k == terminatedHTTP })
		if r.GetDelegate() != nil && f.DelegateOf(v, r) == nil {
			f.add(rule+".delegate", "there is no VirtualService %s that is exported to here", objects.DelegateName(v, r))
		}
		f.delegatedHeaders(rule+".headers", r, f.DelegateOf(v, r))
		for j, d := range r.GetRoute() {
			f.destination(use, objects.Element(rule+".route", j)+".destination", d.GetDestination())
		}
		f.destination(use, rule+".mirror", r.GetMirror())
		if len(r.GetMirrors()) > xdsbuild.MaxMirrors {
			f.add(objects.Element(rule+".mirrors", xdsbuild.MaxMirrors), "there are more than %d mirrors, and no more copies of a request are sent", xdsbuild.MaxMirrors)
		}
		for j, m := range r.GetMirrors() {
			f.destination(use, objects.Element(rule+".mirrors", j)+".destination", m.GetDestination())
		}
	}
	for _, r := range v.L4Routes() {
		use := used(v, r.Matches, func(k serverKind) bool {
			return !r.TLS && (k == plainTCP || k == terminatedTCP) || r.TLS && k.takesTLSRoutes(v)
		})
		for j, d := range r.To {
			f.destination(use, objects.Element(r.Field+".route", j)+".destination", d.GetDestination())
		}
	}
}

// destination adds a finding for a destination that does not exist or is unreachable.
func (f *findings) destination(use routeUse, field string, d *networking.Destination) {
	if d == nil {
		return
	}
	if d.GetHost() == "" {
		f.add(field+".host", "the destination has no host: requests fail")
		return
	}
	names := mesh.Meanings(f.world, hostname.Resolve(d.GetHost(), use.of.Namespace, f.settings.Domain))
	host := names[len(names)-1]
	services := f.world.Named(host)
	if len(services) == 0 {
		f.add(field+".host", "no service has the host name %s: requests fail", host)
		return
	}
	if n := d.GetPort().GetNumber(); n != 0 && !slices.ContainsFunc(services, func(s *registry.Service) bool { return s.Port(n) != nil }) {
		f.add(field+".port", "service %s has no port %d: requests fail", host, n)
	}
	if d.GetSubset() != "" && !f.hasSubset(host, d.GetSubset()) {
		f.add(field+".subset", "no DestinationRule for %s has a subset %q: requests fail", host, d.GetSubset())
	}
	f.unreachable(use, field, d, host)
}

// hasSubset reports whether any DestinationRule for a host defines a subset.
func (f *findings) hasSubset(host registry.Hostname, name string) bool {
	for of := range f.Rules.HostsAbout(host) {
		if slices.ContainsFunc(of.Merged, func(m *objects.Rule) bool { return m.Subset(name) != nil }) {
			return true
		}
	}
	return false
}

// l4Sources adds findings for matches of TCP and TLS routes on client labels, which gateways do not
// know.
func (f *findings) l4Sources(v *objects.VirtualService) {
	for _, r := range v.L4Routes() {
		for j, m := range r.Matches {
			f.l4Source(v, objects.Element(r.Field+".match", j), m)
		}
	}
}

func (f *findings) l4Source(v *objects.VirtualService, field string, m objects.L4Match) {
	labels := registry.Labels(m.GetSourceLabels())
	if len(labels) == 0 {
		return
	}
	names := v.Gateways
	if len(m.GetGateways()) > 0 {
		names = objects.ResolveGateways(m.GetGateways(), v.Namespace)
	}
	selecting := func(name string) bool {
		return slices.ContainsFunc(f.Gateways, func(g *objects.Gateway) bool {
			return g.String() == name && labels.SubsetOf(g.Router().Labels)
		})
	}
	if onlyMesh := slices.Equal(names, []string{objects.MeshGateway}); !onlyMesh && !slices.ContainsFunc(names, selecting) {
		f.add(field+".sourceLabels", "gateways do not know the labels of their clients: the match is left out by those that do not have the labels %s themselves", labels)
	}
}

// unusedL4Routes adds findings for TCP and TLS routes that no gateway has a filter chain for.
func (f *findings) unusedL4Routes(v *objects.VirtualService) {
	beyondMesh := func(m objects.L4Match) bool { return !slices.Equal(m.GetGateways(), []string{objects.MeshGateway}) }
	for _, r := range v.L4Routes() {
		all, _, _ := strings.Cut(r.Field, "[")
		onlyMesh := len(r.Matches) > 0 && !slices.ContainsFunc(r.Matches, beyondMesh)
		switch {
		case f.has(all) || f.has(r.Field) || f.mayServe(v, r):
		case onlyMesh && r.TLS:
			f.add(r.Field, "only gateways are configured for TLS routes")
		case onlyMesh:
			f.add(r.Field, "only gateways are configured for TCP routes")
		default:
			f.add(r.Field, "no server takes its connections, or earlier routes take all of them")
		}
	}
}

// mayServe reports whether some router of the Gateways of a VirtualService may have a filter chain for
// a route. What depends on the routers' labels or namespace is not known.
func (f *findings) mayServe(v *objects.VirtualService, r objects.L4Route) bool {
	if slices.ContainsFunc(r.Matches, func(m objects.L4Match) bool { return m.GetSourceNamespace() != "" || len(m.GetSourceLabels()) > 0 }) {
		return true
	}
	return slices.ContainsFunc(v.Gateways, func(name string) bool {
		g := f.GatewayNamed(name)
		if g == nil {
			return false
		}
		_, ok := f.built(g).chains[originOf(v, r.Field)]
		return ok || !v.Visibility.In(f.routerFor(g).Namespace)
	})
}

// routeUse describes where a route of a VirtualService applies.
type routeUse struct {
	of *objects.VirtualService
	// takes reports whether servers of a kind support such routes.
	takes func(serverKind) bool
	// fits reports whether the route applies to a port of a Gateway, or of the mesh.
	fits func(port uint32, gateway string) bool
}

// used returns where a route with some matches applies.
func used[M interface {
	GetPort() uint32
	GetGateways() []string
}](v *objects.VirtualService, matches []M, takes func(serverKind) bool) routeUse {
	return routeUse{v, takes, func(port uint32, gateway string) bool {
		return len(matches) == 0 || slices.ContainsFunc(matches, func(m M) bool {
			gateways := m.GetGateways()
			return (m.GetPort() == 0 || m.GetPort() == port) &&
				(len(gateways) == 0 || slices.Contains(objects.ResolveGateways(gateways, v.Namespace), gateway))
		})
	}}
}

// unreachable adds a finding for an existing destination that clients cannot reach, because they do
// not see it or cannot determine its port.
func (f *findings) unreachable(use routeUse, field string, d *networking.Destination, host registry.Hostname) {
	for _, g := range f.Gateways {
		if !use.of.BoundTo(g.String()) || !use.of.Visibility.In(g.Router().Namespace) {
			continue
		}
		for i, spec := range g.Spec.GetServers() {
			s := newGatewayServer(g, i, spec.GetPort().GetNumber())
			if s != nil && use.takes(s.kind) && s.sharesHost(use.of) && use.fits(s.port(), g.String()) && f.unreachableFrom(s, field, d, host) {
				return
			}
		}
	}
	if use.of.BoundTo(objects.MeshGateway) && use.takes(plainHTTP) {
		f.unreachableInMesh(use, field, d, host)
	}
}

// unreachableFrom adds a finding if routers in the namespace of a Gateway cannot reach a
// destination of one of its servers.
func (f *findings) unreachableFrom(s *gatewayServer, field string, d *networking.Destination, host registry.Hostname) bool {
	services, namespace := f.world.Named(host), s.gateway.Router().Namespace
	if !slices.ContainsFunc(services, func(svc *registry.Service) bool { return f.settings.Visible(svc, namespace) }) {
		f.add(field+".host", "service %s is not exported to namespace %s of Gateway %s: requests fail there", host, namespace, s.gateway)
		return true
	}
	if !slices.ContainsFunc(services, f.addressed) {
		f.add(field+".host", "service %s has resolution NONE, and gateways do not know where it is: requests fail at Gateway %s", host, s.gateway)
		return true
	}
	if f.ambiguous(services, d, s.port()) {
		f.add(field+".port", "service %s has several ports, and none is %d, that of the server of Gateway %s: requests fail there", host, s.port(), s.gateway)
		return true
	}
	return false
}

// addressed reports whether gateways may know addresses of a service. If its clients choose the
// address, only endpoints say it.
func (f *findings) addressed(svc *registry.Service) bool {
	if svc.Resolution != registry.Passthrough || svc.Attributes.Provider != registry.External {
		return true
	}
	for range f.world.Endpoints(svc).All() {
		return true
	}
	return false
}

// unreachableInMesh adds a finding if no mesh client with the route can reach the destination, or
// if requests to some port of a host cannot.
func (f *findings) unreachableInMesh(use routeUse, field string, d *networking.Destination, host registry.Hostname) {
	services := f.world.Named(host)
	if !slices.ContainsFunc(services, func(svc *registry.Service) bool { return f.seenBy(use.of, svc) }) {
		f.add(field+".host", "service %s is not exported to clients that have the VirtualService: requests fail", host)
		return
	}
	for _, of := range use.of.Hosts {
		for _, svc := range f.world.Named(of) {
			for _, port := range svc.Ports {
				if port.Protocol.IsHTTP() && use.fits(port.Number, objects.MeshGateway) && f.ambiguous(services, d, port.Number) {
					f.add(field+".port", "service %s has several ports, and none is %d, that of %s: requests fail there", host, port.Number, of)
					return
				}
			}
		}
	}
}

// seenBy reports whether some clients that see a VirtualService also see a service.
func (f *findings) seenBy(v *objects.VirtualService, svc *registry.Service) bool {
	if !v.Visibility.Public {
		return slices.ContainsFunc(v.Visibility.Namespaces, func(n string) bool { return f.settings.Visible(svc, n) })
	}
	if f.settings.Visible(svc, svc.Attributes.Namespace) {
		return true
	}
	return slices.ContainsFunc(svc.Attributes.ExportTo, func(to registry.Visibility) bool { return f.settings.Visible(svc, string(to)) })
}

// ambiguous reports whether the port of a destination cannot be determined: the destination names
// none, and its services have several ports but not the port that requests arrive at.
func (f *findings) ambiguous(services []*registry.Service, d *networking.Destination, port uint32) bool {
	return d.GetPort().GetNumber() == 0 && !slices.ContainsFunc(services, func(svc *registry.Service) bool {
		return len(svc.Ports) < 2 || svc.Port(port) != nil
	})
}
