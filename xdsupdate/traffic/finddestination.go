// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// routeUse describes where a route of a VirtualService applies.
type routeUse struct {
	of *objects.VirtualService
	// takes reports whether servers of a kind support such routes.
	takes func(serverKind) bool
	// fits reports whether the route applies to a port of a Gateway, or of the mesh.
	fits func(port uint32, gateway string) bool
}

// usedHTTP returns where an HTTP rule applies.
func usedHTTP(v *objects.VirtualService, r *networking.HTTPRoute) routeUse {
	return routeUse{v, func(k serverKind) bool { return k == plainHTTP || k == terminatedHTTP }, fitting(v, r.GetMatch())}
}

// usedL4 returns where a TCP or TLS route applies.
func usedL4(v *objects.VirtualService, r objects.L4Route) routeUse {
	takes := func(k serverKind) bool { return k == plainTCP || k == terminatedTCP }
	if r.TLS {
		takes = func(k serverKind) bool { return k.takesTLSRoutes(v) }
	}
	return routeUse{v, takes, fitting(v, r.Matches)}
}

// fitting returns a function that reports whether some match of a route applies to a port of a
// gateway.
func fitting[M interface {
	GetPort() uint32
	GetGateways() []string
}](v *objects.VirtualService, matches []M) func(port uint32, gateway string) bool {
	return func(port uint32, gateway string) bool {
		return len(matches) == 0 || slices.ContainsFunc(matches, func(m M) bool {
			gateways := m.GetGateways()
			return (m.GetPort() == 0 || m.GetPort() == port) &&
				(len(gateways) == 0 || slices.Contains(objects.ResolveGateways(gateways, v.Namespace), gateway))
		})
	}
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
	if f.ambiguous(services, d, s.port()) {
		f.add(field+".port", "service %s has several ports, and none is %d, that of the server of Gateway %s: requests fail there", host, s.port(), s.gateway)
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
