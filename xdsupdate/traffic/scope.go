// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// scope is what the outbound side of proxies sees: services and VirtualServices,
// restricted by exportTo and a Sidecar. Proxies of one namespace and Sidecar share
// it. It is immutable.
type scope struct {
	// sidecar is nil if there is none: then everything visible is in the scope.
	sidecar   *sidecar
	namespace string
	// egress are the listeners in order, the one without a port last; there is one
	// at least.
	egress []*egress
	// services have clusters, by their names in lower case: those of all listeners,
	// and the destinations of their VirtualServices.
	services map[registry.Hostname]*service
	// sorted are the services by host name.
	sorted []*service
}

// egress is what one listener of a scope sees.
type egress struct {
	// listener is nil if the Sidecar has none: then everything visible counts.
	listener *networking.IstioEgressListener
	// services are sorted by host name. A listener with a port has those with this
	// port, with this port alone.
	services []*service
	byHost   map[registry.Hostname]*service
	// virtualServices are those of the mesh, in the order of precedence.
	virtualServices []*virtualService
	// virtualServicesByHost returns those of each of their hosts.
	virtualServicesByHost func() map[registry.Hostname][]*virtualService
}

// port returns the listener's port; nil for the one without.
func (e *egress) port() *networking.SidecarPort { return e.listener.GetPort() }

// named reports whether the listener's route configuration is found by a name of
// its own: an HTTP proxy or a unix socket, which serve all ports of their services.
func (e *egress) named() bool {
	return e.port() != nil &&
		(strings.EqualFold(e.port().GetProtocol(), "HTTP_PROXY") || strings.HasPrefix(e.listener.GetBind(), "unix://"))
}

// service returns the service of a name, compared without case; nil for none.
func (s *scope) service(host registry.Hostname) *service { return s.services[lower(host)] }

// egressFor returns the listener that answers for a port: that of the port, else
// the one without a port; nil for none.
func (s *scope) egressFor(port uint32) *egress {
	for _, e := range s.egress {
		if e.port() == nil || !e.named() && e.port().GetNumber() == port {
			return e
		}
	}
	return nil
}

// newScope makes the scope of proxies of a namespace, with a Sidecar or nil.
func newScope(x *index, w world, sc *sidecar, namespace string) *scope {
	s := &scope{sidecar: sc, namespace: namespace, services: make(map[registry.Hostname]*service)}
	listeners := sc.listeners()
	for _, l := range listeners {
		s.egress = append(s.egress, s.newEgress(x, w, l))
	}
	for _, e := range s.egress {
		for _, svc := range e.services {
			s.add(svc)
		}
	}
	if sc != nil {
		for _, e := range s.egress {
			for _, v := range e.virtualServices {
				s.addDestinations(x, w, v)
			}
		}
	}
	for _, svc := range s.services {
		s.sorted = append(s.sorted, svc)
	}
	slices.SortFunc(s.sorted, compareServices)
	return s
}

func compareServices(a, b *service) int { return cmp.Compare(lower(a.host), lower(b.host)) }

// listeners returns the egress listeners; a nil one stands for everything visible.
func (s *sidecar) listeners() []*networking.IstioEgressListener {
	if s == nil || len(s.spec.GetEgress()) == 0 {
		return []*networking.IstioEgressListener{nil}
	}
	return s.spec.GetEgress()
}

func (s *scope) newEgress(x *index, w world, l *networking.IstioEgressListener) *egress {
	e := &egress{listener: l, byHost: make(map[registry.Hostname]*service)}
	hosts := newEgressHosts(l.GetHosts(), s.namespace)
	accept := func(svc *registry.Service) bool {
		return x.settings.visible(svc, s.namespace) && (l == nil || hosts.service(svc))
	}
	for name, services := range hostsOf(w) {
		svc := chooseService(services, s.namespace, accept)
		if svc != nil && l.GetPort() != nil && !e.named() {
			svc = svc.withPorts(func(number uint32) bool { return number == l.GetPort().GetNumber() })
		}
		if svc != nil {
			e.services = append(e.services, svc)
			e.byHost[name] = svc
		}
	}
	slices.SortFunc(e.services, compareServices)
	for _, v := range x.virtualServicesFor(meshGateway, s.namespace) {
		if l == nil || hosts.virtualService(v) {
			e.virtualServices = append(e.virtualServices, v)
		}
	}
	e.virtualServicesByHost = sync.OnceValue(func() map[registry.Hostname][]*virtualService {
		out := make(map[registry.Hostname][]*virtualService)
		for _, v := range e.virtualServices {
			for _, host := range v.hosts {
				if !slices.Contains(out[host], v) {
					out[host] = append(out[host], v)
				}
			}
		}
		return out
	})
	return e
}

// hostsOf returns the services of a world by host name in lower case, each list in
// the order of precedence.
func hostsOf(w world) map[registry.Hostname][]*registry.Service {
	out := make(map[registry.Hostname][]*registry.Service)
	for s := range w.all() {
		name := lower(s.Hostname)
		out[name] = append(out[name], s)
	}
	for _, list := range out {
		slices.SortStableFunc(list, registry.ComparePrecedence)
	}
	return out
}

// add adds a service, or ports to the one that is there.
func (s *scope) add(svc *service) {
	name := lower(svc.host)
	have := s.services[name]
	switch {
	case have == nil:
		s.services[name] = svc
	case have.namespace == svc.namespace:
		s.services[name] = have.merge(svc)
	}
}

// merge returns the service with the ports of another of the same name and
// namespace.
func (s *service) merge(with *service) *service {
	out := *s
	out.ports = slices.Clone(s.ports)
	for _, p := range with.ports {
		if _, have := out.port(p.Number); !have {
			out.ports = append(out.ports, p)
		}
	}
	return &out
}

// addDestinations adds the destinations of an imported VirtualService, with the
// ports that it uses: all of them, if one destination names none. They count even
// if the Sidecar does not import them (Istio 1.30).
func (s *scope) addDestinations(x *index, w world, v *virtualService) {
	for host, ports := range x.destinationsOf(v) {
		svc := s.destination(x, w, host)
		if svc != nil && !slices.Contains(ports, 0) {
			svc = svc.withPorts(func(number uint32) bool { return slices.Contains(ports, number) })
		}
		if svc != nil {
			s.add(svc)
		}
	}
}

// destination returns the service of a destination: that of the own namespace, or
// else of the first visible namespace.
func (s *scope) destination(x *index, w world, host registry.Hostname) *service {
	var visible []*registry.Service
	for _, svc := range w.named(host) {
		if x.settings.visible(svc, s.namespace) {
			visible = append(visible, svc)
		}
	}
	own := slices.ContainsFunc(visible, func(svc *registry.Service) bool { return svc.Attributes.Namespace == s.namespace })
	namespace := s.namespace
	if !own && len(visible) > 0 {
		namespace = slices.MinFunc(visible, func(a, b *registry.Service) int {
			return strings.Compare(a.Attributes.Namespace, b.Attributes.Namespace)
		}).Attributes.Namespace
	}
	return chooseService(visible, namespace, func(svc *registry.Service) bool { return svc.Attributes.Namespace == namespace })
}
