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

// scope contains the services and VirtualServices that the outbound side of proxies sees,
// restricted by exportTo and a Sidecar. Proxies with the same namespace and Sidecar share it. It is
// immutable except for cached computations.
type scope struct {
	index *index
	// sidecar is nil if no Sidecar applies. The scope then contains everything visible.
	sidecar   *sidecar
	namespace string
	// egress are the listeners in order, and a listener without a port is last. There is at least
	// one.
	egress []*egress
	// services are the services with clusters, by host name in lower case: the services of all
	// listeners, and the destinations of their VirtualServices.
	services pmap.Map[registry.Hostname, *service]
	// sorted contains the services, sorted by host name.
	sorted []*service
	// imports is the number of services of the listeners before Limits.Imports is applied. A
	// service counts once for each listener.
	imports int
	// imported are the destinations of a Sidecar's VirtualServices.
	imported map[registry.Hostname]struct{}
}

// egress contains the services and VirtualServices that one listener of a scope sees.
type egress struct {
	index     *index
	namespace string
	// listener is nil if the Sidecar has none. The egress then contains everything visible.
	listener *networking.IstioEgressListener
	hosts    egressHosts
	// services are sorted by host name. For a listener with a port, they are the services with this
	// port, restricted to it.
	services []*service
	byHost   pmap.Map[registry.Hostname, *service]
	// dropped is the first service that exceeds the limit of imports. It is empty if there is none.
	dropped registry.Hostname
	// virtualServices returns the VirtualServices of the mesh that the listener sees, in the order
	// of precedence.
	virtualServices func() []*virtualService
}

// port returns the listener's port, or nil if it has none.
func (e *egress) port() *networking.SidecarPort { return e.listener.GetPort() }

// named reports whether the listener's route configuration has its own name, because the listener
// is an HTTP proxy or a unix socket. Such listeners serve all ports of their services.
func (e *egress) named() bool {
	return e.port() != nil &&
		(strings.EqualFold(e.port().GetProtocol(), "HTTP_PROXY") || strings.HasPrefix(e.listener.GetBind(), unixScheme))
}

// service returns the named service, or nil. Names are case-insensitive.
func (s *scope) service(host registry.Hostname) *service {
	svc, _ := s.services.Get(lower(host))
	return svc
}

// service returns the named service, or nil. Names are case-insensitive.
func (e *egress) service(host registry.Hostname) *service {
	svc, _ := e.byHost.Get(lower(host))
	return svc
}

// egressFor returns the listener for a port: the listener with the port, or else the one without a
// port, or nil.
func (s *scope) egressFor(port uint32) *egress {
	for _, e := range s.egress {
		if e.port() == nil || !e.named() && e.port().GetNumber() == port {
			return e
		}
	}
	return nil
}

// newScope builds the scope of proxies in a namespace. The Sidecar may be nil.
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

// listeners returns the egress listeners. A nil listener stands for everything visible.
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

// bind sets the index that the listener's VirtualServices come from.
func (e *egress) bind(x *index) {
	e.index = x
	e.virtualServices = sync.OnceValue(func() []*virtualService { return seenIn(x.finder.boundTo(meshGateway), e.namespace, e.imports) })
}

// choose returns the service that the listener sees, among the services with one host name, or nil.
func (e *egress) choose(services []*registry.Service) *service {
	svc := chooseService(services, e.namespace, func(svc *registry.Service) bool {
		return e.index.settings.visible(svc, e.namespace) && (e.listener == nil || e.hosts.service(svc))
	})
	if svc != nil && e.port() != nil && !e.named() {
		svc = svc.withPorts(func(number uint32) bool { return number == e.port().GetNumber() })
	}
	return svc
}

// imports reports whether the listener sees a VirtualService, provided that the VirtualService is
// visible.
func (e *egress) imports(v *virtualService) bool {
	return e.listener == nil || e.hosts.virtualService(v)
}

// virtualServicesOf returns the VirtualServices for a host name in lower case, in the order of
// precedence: it looks for exactly this host, and else for the longest wildcard that covers it.
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
	return seenIn(e.index.finder.withHost(host), e.namespace, func(v *virtualService) bool { return v.boundTo(meshGateway) && e.imports(v) })
}

// add adds a service, or its ports to an existing service.
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

// merge returns the service with additional ports of another one with the same name and namespace.
func (s *service) merge(with *service) *service {
	out := s.withoutPorts()
	for _, p := range slices.Concat(s.ports, with.ports) {
		out.addPort(p)
	}
	return out
}

// addDestinations adds the destinations of an imported VirtualService with the ports that it uses,
// or with all ports if a destination has none. Destinations are added even if the Sidecar does not
// import them (Istio 1.30).
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

// destination returns the service of a destination in the scope's namespace, or else in the
// alphabetically first namespace with a visible one.
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
