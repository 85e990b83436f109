// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// host is the state of a host name: one variant for each namespace that defines it, the oldest
// first. It is immutable.
type host struct {
	name     registry.Hostname
	variants []*variant
	// madeOf are the services that it was built from, unmodified.
	madeOf []*registry.Service
}

// variant is a host as one namespace defines it.
type variant struct {
	namespace string
	madeOf    []*registry.Service // unmodified
	services  []*registry.Service // Kubernetes services first, then the oldest first; not empty
	endpoints *xdsupdate.ServiceEndpoints
	ports     []*port // for each number and visibility, that of the first service
}

// endpointsOf returns the endpoints of a host in a namespace, of all shards.
type endpointsOf func(hostname registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints

// newHost builds a host from its services, which are in the order of CompareServices. Unchanged
// parts are taken from old, which may be nil. It returns old itself if all parts are unchanged, and
// nil without services.
func newHost(old *host, services []*registry.Service, endpoints endpointsOf) *host {
	if len(services) == 0 {
		return nil
	}
	if old.isMadeOf(services, endpoints) {
		return old
	}
	services = slices.Clone(services)
	h := &host{name: services[0].Hostname, madeOf: services}
	for len(services) > 0 {
		namespace := services[0].Attributes.Namespace
		n := 1
		for n < len(services) && services[n].Attributes.Namespace == namespace {
			n++
		}
		h.variants = append(h.variants, newVariant(old.in(namespace), services[:n], endpoints(h.name, namespace)))
		services = services[n:]
	}
	slices.SortStableFunc(h.variants, func(a, b *variant) int {
		return registry.ComparePrecedence(a.services[0], b.services[0])
	})
	return h
}

// isMadeOf reports whether a host, which may be nil, was built from these very services and
// endpoints.
func (h *host) isMadeOf(services []*registry.Service, endpoints endpointsOf) bool {
	return h.hasServices(services) &&
		(h == nil || !slices.ContainsFunc(h.variants, func(v *variant) bool { return v.endpoints != endpoints(h.name, v.namespace) }))
}

// hasServices reports whether the host was built from these very services.
func (h *host) hasServices(services []*registry.Service) bool {
	if h == nil {
		return len(services) == 0
	}
	return slices.Equal(h.madeOf, services)
}

func newVariant(old *variant, services []*registry.Service, endpoints *xdsupdate.ServiceEndpoints) *variant {
	v := &variant{namespace: services[0].Attributes.Namespace, madeOf: services, endpoints: endpoints}
	if old != nil && slices.Equal(old.madeOf, services) {
		v.services, v.ports = old.services, old.ports
		if old.endpoints != endpoints {
			v.ports = make([]*port, len(old.ports))
			for i, p := range old.ports {
				v.ports[i] = p.withEndpoints(endpoints)
			}
		}
		return v
	}
	v.services = slices.Clone(services)
	for i, svc := range v.services {
		if slices.Contains(svc.Ports, nil) {
			v.services[i] = &registry.Service{}
			*v.services[i] = *svc
			v.services[i].Ports = withoutNil(svc.Ports)
		}
	}
	// In its own cluster Kubernetes is the authority on a name, however old a
	// ServiceEntry of the same name is (Istio 1.30, "domain squatting").
	slices.SortStableFunc(v.services, func(a, b *registry.Service) int {
		return cmp.Compare(foreign(a), foreign(b))
	})
	if old != nil && v.endpoints == old.endpoints &&
		slices.EqualFunc(v.services, old.services, (*registry.Service).Equal) {
		v.ports = old.ports
		return v
	}
	for _, svc := range v.services {
		for _, p := range svc.Ports {
			if !slices.ContainsFunc(v.ports, func(q *port) bool {
				return q.port.Number == p.Number && sameVisibility(q.service, svc)
			}) {
				v.ports = append(v.ports, newPort(svc, p, endpoints))
			}
		}
	}
	return v
}

// sameVisibility compares services of one namespace.
func sameVisibility(a, b *registry.Service) bool {
	return a.Attributes.Visibility == b.Attributes.Visibility && slices.Equal(a.Attributes.ExportTo, b.Attributes.ExportTo)
}

func foreign(svc *registry.Service) int {
	if svc.Attributes.Provider == registry.Kubernetes {
		return 0
	}
	return 1
}

// in returns the variant of a namespace, or nil.
func (h *host) in(namespace string) *variant {
	if h == nil {
		return nil
	}
	for _, v := range h.variants {
		if v.namespace == namespace {
			return v
		}
	}
	return nil
}

// seenBy returns the variant that proxies of a view see: that of their own namespace, or else the
// oldest visible one, or nil.
func (h *host) seenBy(v View) *variant {
	if own := h.in(v.Namespace); own.visibleIn(v.Namespace) {
		return own
	}
	if h == nil {
		return nil
	}
	for _, candidate := range h.variants {
		if candidate.visibleIn(v.Namespace) {
			return candidate
		}
	}
	return nil
}

func (v *variant) visibleIn(namespace string) bool {
	return v != nil && slices.ContainsFunc(v.services, func(s *registry.Service) bool { return s.VisibleIn(namespace) })
}

// port returns the port with a number that a view sees, or nil. Number 0 is the default port.
func (v *variant) port(number uint32, by View) *port {
	if v == nil {
		return nil
	}
	if number == 0 {
		first := slices.IndexFunc(v.services, func(s *registry.Service) bool { return s.VisibleIn(by.Namespace) })
		if first < 0 {
			return nil
		}
		p := xdsbuild.DefaultPort(v.services[first])
		if p == nil {
			return nil
		}
		number = p.Number
	}
	for _, p := range v.ports {
		if p.port.Number == number && p.service.VisibleIn(by.Namespace) {
			return p
		}
	}
	return nil
}

// vips returns the addresses of a host for a view.
func (v *variant) vips(by View) []string {
	var out []string
	for _, s := range v.services {
		if !s.VisibleIn(by.Namespace) {
			continue
		}
		for _, a := range by.AddressesOf(s) {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// sameServices reports whether two variants have the same services.
func (v *variant) sameServices(w *variant) bool {
	return v.namespace == w.namespace && slices.EqualFunc(v.services, w.services, (*registry.Service).Equal)
}
