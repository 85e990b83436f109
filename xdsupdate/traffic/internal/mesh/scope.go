// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Scope contains the services and VirtualServices that the outbound side of proxies sees,
// restricted by exportTo and a Sidecar. Proxies with the same namespace and Sidecar share it. It is
// immutable except for cached computations.
type Scope struct {
	index *objects.Index
	// Sidecar is nil if no Sidecar applies. The scope then contains everything visible.
	Sidecar   *objects.Sidecar
	namespace string
	// Egress are the listeners in order, and a listener without a port is last. There is at least
	// one.
	Egress []*Egress
	// services are the services with clusters, by host name in lower case: the services of all
	// listeners, and the destinations of their VirtualServices.
	services pmap.Map[registry.Hostname, *Service]
	// Sorted contains the services, sorted by host name.
	Sorted []*Service
	// imports is the number of services of the listeners before Limits.Imports is applied. A
	// service counts once for each listener.
	imports int
	// imported are the destinations of a Sidecar's VirtualServices.
	imported map[registry.Hostname]struct{}
}

// Egress contains the services and VirtualServices that one listener of a scope sees.
type Egress struct {
	Index     *objects.Index
	Namespace string
	// Listener is nil if the Sidecar has none. The egress then contains everything visible.
	Listener *networking.IstioEgressListener
	Hosts    EgressHosts
	// Services are sorted by host name. For a listener with a port, they are the services with this
	// port, restricted to it.
	Services []*Service
	byHost   pmap.Map[registry.Hostname, *Service]
	// Dropped is the first service that exceeds the limit of imports. It is empty if there is none.
	Dropped registry.Hostname
	// VirtualServices returns the VirtualServices of the mesh that the listener sees, in the order
	// of precedence.
	VirtualServices func() []*objects.VirtualService
}

// port returns the listener's port, or nil if it has none.
func (e *Egress) port() *networking.SidecarPort { return e.Listener.GetPort() }

// Named reports whether the listener's route configuration has its own name, because the listener
// is an HTTP proxy or a unix socket. Such listeners serve all ports of their services.
func (e *Egress) Named() bool {
	return e.port() != nil &&
		(strings.EqualFold(e.port().GetProtocol(), "HTTP_PROXY") || strings.HasPrefix(e.Listener.GetBind(), objects.UnixScheme))
}

// Service returns the named service, or nil. Names are case-insensitive.
func (s *Scope) Service(host registry.Hostname) *Service {
	svc, _ := s.services.Get(hostname.Lower(host))
	return svc
}

// Service returns the named service, or nil. Names are case-insensitive.
func (e *Egress) Service(host registry.Hostname) *Service {
	svc, _ := e.byHost.Get(hostname.Lower(host))
	return svc
}

// EgressFor returns the listener for a port: the listener with the port, or else the one without a
// port, or nil.
func (s *Scope) EgressFor(port uint32) *Egress {
	for _, e := range s.Egress {
		if e.port() == nil || !e.Named() && e.port().GetNumber() == port {
			return e
		}
	}
	return nil
}

// NewScope builds the scope of proxies in a namespace. The Sidecar may be nil. The limit is
// Limits.Imports.
func NewScope(x *objects.Index, w *World, sc *objects.Sidecar, namespace string, limit int) *Scope {
	s := &Scope{index: x, Sidecar: sc, namespace: namespace}
	for _, l := range sc.Listeners() {
		s.Egress = append(s.Egress, newEgress(x, w, l, namespace))
	}
	if sc == nil {
		s.services, s.Sorted = s.Egress[0].byHost, s.Egress[0].Services
		return s
	}
	s.limitImports(limit)
	for _, e := range s.Egress {
		for _, svc := range e.Services {
			s.add(svc)
		}
	}
	s.imported = make(map[registry.Hostname]struct{})
	for _, e := range s.Egress {
		for _, v := range e.VirtualServices() {
			s.addDestinations(x, w, v, e)
		}
	}
	for _, svc := range s.services.All() {
		s.Sorted = append(s.Sorted, svc)
	}
	slices.SortFunc(s.Sorted, compareServices)
	return s
}

func compareServices(a, b *Service) int {
	return cmp.Compare(hostname.Lower(a.Host), hostname.Lower(b.Host))
}

func newEgress(x *objects.Index, w *World, l *networking.IstioEgressListener, namespace string) *Egress {
	e := &Egress{Namespace: namespace, Listener: l, Hosts: NewEgressHosts(l.GetHosts(), namespace)}
	e.bind(x)
	for name, services := range w.HostsFor(namespace) {
		if svc := e.Choose(services); svc != nil {
			e.Services = append(e.Services, svc)
			e.byHost = e.byHost.Set(name, svc)
		}
	}
	slices.SortFunc(e.Services, compareServices)
	return e
}

// bind sets the index that the listener's VirtualServices come from.
func (e *Egress) bind(x *objects.Index) {
	e.Index = x
	e.VirtualServices = sync.OnceValue(func() []*objects.VirtualService {
		return objects.SeenIn(x.Finder.BoundTo(objects.MeshGateway), e.Namespace, e.Imports)
	})
}

// Choose returns the service that the listener sees, among the services with one host name, or nil.
func (e *Egress) Choose(services []*registry.Service) *Service {
	svc := ChooseService(services, e.Namespace, func(svc *registry.Service) bool {
		return e.Index.Settings.Visible(svc, e.Namespace) && (e.Listener == nil || e.Hosts.Service(svc))
	})
	if svc != nil && e.onePort() {
		svc = e.atPort(svc)
	}
	return svc
}

// onePort reports whether the listener has services with its port only.
func (e *Egress) onePort() bool { return e.port() != nil && !e.Named() }

// atPort returns a service with the listener's port alone, or nil.
func (e *Egress) atPort(svc *Service) *Service {
	return svc.withPorts(func(number uint32) bool { return number == e.port().GetNumber() })
}

// Imports reports whether the listener sees a VirtualService, provided that the VirtualService is
// visible.
func (e *Egress) Imports(v *objects.VirtualService) bool {
	return e.Listener == nil || e.Hosts.VirtualService(v)
}

// VirtualServicesOf returns the VirtualServices for a host name in lower case, in the order of
// precedence: it looks for exactly this host, and else for the longest wildcard that covers it.
func (e *Egress) VirtualServicesOf(name registry.Hostname) []*objects.VirtualService {
	if found := e.virtualServicesWith(name); len(found) > 0 {
		return found
	}
	if e.Index.Finder.Wildcards == 0 {
		return nil
	}
	for wildcard := range hostname.Wildcards(name) {
		if found := e.virtualServicesWith(wildcard); len(found) > 0 {
			return found
		}
	}
	return nil
}

func (e *Egress) virtualServicesWith(host registry.Hostname) []*objects.VirtualService {
	return objects.SeenIn(e.Index.Finder.WithHost(host), e.Namespace, func(v *objects.VirtualService) bool { return v.BoundTo(objects.MeshGateway) && e.Imports(v) })
}

// add adds a service, or its ports to an existing service.
func (s *Scope) add(svc *Service) {
	name := hostname.Lower(svc.Host)
	have := s.Service(name)
	switch {
	case have == nil:
		s.services = s.services.Set(name, svc)
	case have.Namespace == svc.Namespace:
		s.services = s.services.Set(name, have.merge(svc))
	}
}

// merge returns the service with additional ports of another one with the same name and namespace.
func (s *Service) merge(with *Service) *Service {
	out := s.withoutPorts()
	for _, p := range slices.Concat(s.Ports, with.Ports) {
		out.addPort(p)
	}
	return out
}

// addDestinations adds the destinations of a VirtualService that a listener imports: with the port of
// the listener or, if it has none, with the ports that the VirtualService uses, which are all ports if a
// destination has none. Destinations are added even if the Sidecar does not import them (Istio 1.30).
func (s *Scope) addDestinations(x *objects.Index, w *World, v *objects.VirtualService, e *Egress) {
	for host, ports := range x.DestinationsOf(v) {
		s.imported[host] = struct{}{}
		svc := s.destination(w, host)
		if svc != nil {
			_, svc = Concrete(svc, func(target registry.Hostname) *Service {
				s.imported[target] = struct{}{}
				return s.destination(w, target)
			})
		}
		if svc == nil {
			continue
		}
		_, all := ports[0]
		switch {
		case e.onePort():
			svc = e.atPort(svc)
		case !all:
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
func (s *Scope) destination(w *World, host registry.Hostname) *Service {
	byNamespace := slices.Clone(w.Named(host))
	slices.SortStableFunc(byNamespace, func(a, b *registry.Service) int {
		return strings.Compare(a.Attributes.Namespace, b.Attributes.Namespace)
	})
	return ChooseService(byNamespace, s.namespace, func(svc *registry.Service) bool { return s.index.Settings.Visible(svc, s.namespace) })
}

// limitImports enforces Limits.Imports for the listeners of a Sidecar. The first listener that
// exceeds it, and those after it, import only the oldest services within the rest of the limit. The
// first listener of the Sidecar is never limited.
func (s *Scope) limitImports(limit int) {
	for i, e := range s.Egress {
		before := s.imports
		if s.imports += len(e.Services); i > 0 && limit > 0 && s.imports > limit {
			e.keepOldest(max(0, limit-before))
		}
	}
}

// keepOldest drops all services of a new listener except the n oldest.
func (e *Egress) keepOldest(n int) {
	if n >= len(e.Services) {
		return
	}
	byAge := slices.Clone(e.Services)
	slices.SortFunc(byAge, func(a, b *Service) int {
		return cmp.Or(a.Of[0].CreationTime.Compare(b.Of[0].CreationTime), compareServices(a, b))
	})
	for _, svc := range byAge[n:] {
		e.byHost = e.byHost.Delete(hostname.Lower(svc.Host))
	}
	e.Dropped = byAge[n].Host
	e.Services = byAge[:n]
	slices.SortFunc(e.Services, compareServices)
}

// EgressNamed returns the listener whose route configuration has its own name, or nil.
func (s *Scope) EgressNamed(name string) *Egress {
	i := slices.IndexFunc(s.Egress, func(e *Egress) bool { return e.Named() && e.RouteName() == name })
	if i < 0 {
		return nil
	}
	return s.Egress[i]
}

// RouteName returns the name of the route configuration of a named listener.
func (e *Egress) RouteName() string {
	if bind := e.Listener.GetBind(); strings.HasPrefix(bind, objects.UnixScheme) {
		return bind
	}
	return strconv.FormatUint(uint64(e.port().GetNumber()), 10)
}

// ScopeBase is a scope of an earlier state, with the changes since. A new scope is derived from it
// on demand, at the cost of the relevant changes.
type ScopeBase struct {
	// Scope is nil if it was dropped.
	Scope *Scope
	// Listeners is the number of the Sidecar's listeners, and imports is an upper bound for the
	// number of services that they import now. Both are kept when the scope is dropped, because
	// clients may still have its resources.
	Listeners, Imports int
	// hosts are the hosts, in lower case, with changed services.
	hosts []registry.Hostname
	// virtualServices are the old and new revisions of changed VirtualServices.
	virtualServices []*objects.VirtualService
	// age counts the states that did not need the scope.
	age int
}

// A scope is dropped after so many changes that building a new one is as cheap, or after so many
// states that did not need it.
const (
	maxBaseChanges limit.Size = 256
	maxBaseAge     limit.Size = 64
)

// NewScopeBase returns the base of a scope without changes.
func NewScopeBase(s *Scope) *ScopeBase {
	return &ScopeBase{Scope: s, Listeners: len(s.Egress), Imports: s.imports}
}

// Since returns the base after more changes of services and VirtualServices, or nil.
func (b ScopeBase) Since(hosts []registry.Hostname, changed []*objects.VirtualService) *ScopeBase {
	b.Imports += b.Listeners * len(hosts)
	if len(hosts) > 0 {
		b.hosts = slices.Concat(b.hosts, hosts)
	}
	if len(changed) > 0 {
		b.virtualServices = slices.Concat(b.virtualServices, changed)
	}
	if b.age++; b.Scope != nil && b.age <= maxBaseAge.Get() && len(b.hosts)+len(b.virtualServices) <= maxBaseChanges.Get() {
		return &b
	}
	if b.Listeners <= 1 { // a single listener has no limit of imports
		return nil
	}
	return &ScopeBase{Listeners: b.Listeners, Imports: b.Imports}
}

// In returns the scope in a new state. The limit is Limits.Imports.
func (b *ScopeBase) In(x *objects.Index, w *World, limit int) *Scope {
	s := b.Scope
	if s.Sidecar == nil {
		return s.withServices(x, w, b.hosts)
	}
	if b.affectedBy(w) {
		return NewScope(x, w, s.Sidecar, s.namespace, limit)
	}
	return s.withServices(x, w, nil)
}

// affectedBy reports whether the changes affect the imports of a Sidecar.
func (b *ScopeBase) affectedBy(w *World) bool {
	s := b.Scope
	for _, host := range b.hosts {
		_, imported := s.imported[host]
		if imported || s.Service(host) != nil {
			return true
		}
		for _, e := range s.Egress {
			if e.Choose(w.Named(host)) != nil {
				return true
			}
		}
	}
	for _, v := range b.virtualServices {
		if v.Delegate() { // changes of delegates are rare, so their roots are not determined
			return true
		}
		for _, e := range s.Egress {
			if v.Visibility.In(s.namespace) && e.Imports(v) {
				return true
			}
		}
	}
	return false
}

// withServices returns the scope with the VirtualServices of an index and updated services of some
// hosts.
func (s *Scope) withServices(x *objects.Index, w *World, hosts []registry.Hostname) *Scope {
	out := *s
	out.index = x
	out.Egress = make([]*Egress, len(s.Egress))
	for i, e := range s.Egress {
		next := *e
		next.bind(x)
		for _, host := range hosts {
			next.renew(w, host)
		}
		out.Egress[i] = &next
	}
	if s.Sidecar == nil {
		out.services, out.Sorted = out.Egress[0].byHost, out.Egress[0].Services
	}
	return &out
}

// renew updates the service of a host in a new egress.
func (e *Egress) renew(w *World, host registry.Hostname) {
	before, after := e.Service(host), e.Choose(w.Named(host))
	if before == nil && after == nil {
		return
	}
	e.Services = objects.Replaced(e.Services, before, after, compareServices)
	if after == nil {
		e.byHost = e.byHost.Delete(host)
	} else {
		e.byHost = e.byHost.Set(host, after)
	}
}
