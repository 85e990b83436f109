// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// scope is what the outbound side of proxies sees: services and VirtualServices,
// restricted by exportTo and a Sidecar. Proxies of one namespace and Sidecar share
// it. It is immutable but for what it has computed.
type scope struct {
	index *index
	// sidecar is nil if there is none: then everything visible is in the scope.
	sidecar   *sidecar
	namespace string
	// egress are the listeners in order, the one without a port last; there is one
	// at least.
	egress []*egress
	// services have clusters, by their names in lower case: those of all listeners,
	// and the destinations of their VirtualServices.
	services pmap.Map[registry.Hostname, *service]
	// sorted are the services by host name.
	sorted []*service
	// imports is how many services the listeners have, before Limits.Imports, each service
	// counted for each of them.
	imports int
	// imported are the destinations of the VirtualServices of a Sidecar.
	imported map[registry.Hostname]struct{}
}

// egress is what one listener of a scope sees.
type egress struct {
	index     *index
	namespace string
	// listener is nil if the Sidecar has none: then everything visible counts.
	listener *networking.IstioEgressListener
	hosts    egressHosts
	// services are sorted by host name. A listener with a port has those with this
	// port, with this port alone.
	services []*service
	byHost   pmap.Map[registry.Hostname, *service]
	// dropped is the first of the services that there is no room for; empty: none.
	dropped registry.Hostname
	// virtualServices returns those of the mesh, in the order of precedence.
	virtualServices func() []*virtualService
}

// port returns the listener's port; nil for the one without.
func (e *egress) port() *networking.SidecarPort { return e.listener.GetPort() }

// named reports whether the listener's route configuration is found by a name of
// its own: an HTTP proxy or a unix socket, which serve all ports of their services.
func (e *egress) named() bool {
	return e.port() != nil &&
		(strings.EqualFold(e.port().GetProtocol(), "HTTP_PROXY") || strings.HasPrefix(e.listener.GetBind(), unixScheme))
}

// service returns the service of a name, compared without case; nil for none.
func (s *scope) service(host registry.Hostname) *service {
	svc, _ := s.services.Get(lower(host))
	return svc
}

// service returns the service of a name, compared without case; nil for none.
func (e *egress) service(host registry.Hostname) *service {
	svc, _ := e.byHost.Get(lower(host))
	return svc
}

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
	s := &scope{index: x, sidecar: sc, namespace: namespace}
	for _, l := range sc.listeners() {
		s.egress = append(s.egress, newEgress(x, w, l, namespace))
	}
	if sc == nil {
		s.services, s.sorted = s.egress[0].byHost, s.egress[0].services
		return s
	}
	s.limitImports(x.settings.limits.Imports)
	for _, e := range s.egress {
		for _, svc := range e.services {
			s.add(svc)
		}
	}
	s.imported = make(map[registry.Hostname]struct{})
	for _, e := range s.egress {
		for _, v := range e.virtualServices() {
			s.addDestinations(x, w, v)
		}
	}
	for _, svc := range s.services.All() {
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

func newEgress(x *index, w world, l *networking.IstioEgressListener, namespace string) *egress {
	e := &egress{namespace: namespace, listener: l, hosts: newEgressHosts(l.GetHosts(), namespace).indexed()}
	e.bind(x)
	for name, services := range w.hosts() {
		if svc := e.choose(services); svc != nil {
			e.services = append(e.services, svc)
			e.byHost = e.byHost.Set(name, svc)
		}
	}
	slices.SortFunc(e.services, compareServices)
	return e
}

// bind makes an index the one whose VirtualServices the listener sees.
func (e *egress) bind(x *index) {
	e.index = x
	e.virtualServices = sync.OnceValue(func() []*virtualService {
		return slices.DeleteFunc(x.virtualServicesFor(meshGateway, e.namespace), func(v *virtualService) bool { return !e.imports(v) })
	})
}

// choose returns which of the services of a host name the listener sees, or nil.
func (e *egress) choose(services []*registry.Service) *service {
	svc := chooseService(services, e.namespace, func(svc *registry.Service) bool {
		return e.index.settings.visible(svc, e.namespace) && (e.listener == nil || e.hosts.service(svc))
	})
	if svc != nil && e.port() != nil && !e.named() {
		svc = svc.withPorts(func(number uint32) bool { return number == e.port().GetNumber() })
	}
	return svc
}

// imports reports whether a VirtualService that is visible is one that the listener
// sees.
func (e *egress) imports(v *virtualService) bool {
	return e.listener == nil || e.hosts.virtualService(v)
}

// virtualServicesOf returns those for a host name in lower case, in the order of
// precedence: those with the name, or else with the longest wildcard that covers it.
func (e *egress) virtualServicesOf(name registry.Hostname) []*virtualService {
	if found := e.virtualServicesWith(name); len(found) > 0 {
		return found
	}
	if e.index.finder.wildcards == 0 {
		return nil
	}
	for wildcard := range wildcardsOf(name) {
		if found := e.virtualServicesWith(wildcard); len(found) > 0 {
			return found
		}
	}
	return nil
}

func (e *egress) virtualServicesWith(host registry.Hostname) []*virtualService {
	var out []*virtualService
	for _, v := range e.index.finder.withHost(host) {
		if v.boundTo(meshGateway) && v.visibility.in(e.namespace) && e.imports(v) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *virtualService) int { return cmp.Compare(a.rank(e.namespace), b.rank(e.namespace)) })
	return out
}

// add adds a service, or ports to the one that is there.
func (s *scope) add(svc *service) {
	name := lower(svc.host)
	have := s.service(name)
	switch {
	case have == nil:
		s.services = s.services.Set(name, svc)
	case have.namespace == svc.namespace:
		s.services = s.services.Set(name, have.merge(svc))
	}
}

// merge returns the service with the ports of another of the same name and
// namespace.
func (s *service) merge(with *service) *service {
	out := s.withoutPorts()
	for _, p := range slices.Concat(s.ports, with.ports) {
		out.addPort(p)
	}
	return out
}

// addDestinations adds the destinations of an imported VirtualService, with the
// ports that it uses: all of them, if one destination names none. They count even
// if the Sidecar does not import them (Istio 1.30).
func (s *scope) addDestinations(x *index, w world, v *virtualService) {
	for host, ports := range x.destinationsOf(v) {
		s.imported[host] = struct{}{}
		svc := s.destination(w, host)
		if svc != nil {
			_, svc = concrete(svc, func(target registry.Hostname) *service {
				s.imported[target] = struct{}{}
				return s.destination(w, target)
			})
		}
		if _, all := ports[0]; svc != nil && !all {
			svc = svc.withPorts(func(number uint32) bool {
				_, used := ports[number]
				return used
			})
		}
		if svc != nil {
			s.add(svc)
		}
	}
}

// destination returns the service of a destination: that of the own namespace, or
// else of the first visible namespace.
func (s *scope) destination(w world, host registry.Hostname) *service {
	var visible []*registry.Service
	for _, svc := range w.named(host) {
		if s.index.settings.visible(svc, s.namespace) {
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
