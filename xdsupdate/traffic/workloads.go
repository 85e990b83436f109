// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// workloads finds the endpoints that services of a namespace have at an address. It is of one world; what it
// has computed for the one before is used where that is the same. Namespaces that nobody asked for cost nothing.
type workloads struct {
	world world

	mu sync.Mutex
	// before are the lists of a former world. services: the services are others.
	before   map[string][]*serviceWorkloads
	services bool
	lists    map[string][]*serviceWorkloads
}

// serviceWorkloads are the endpoints of a service by address in its canonical form. It is immutable.
type serviceWorkloads struct {
	service   *registry.Service
	endpoints *xdsupdate.ServiceEndpoints
	byAddress map[string][]*registry.Endpoint
}

// workload is an endpoint of a service.
type workload struct {
	service  *registry.Service
	endpoint *registry.Endpoint
}

// newWorkloads returns those of a world that follows on another one, whose are given, nil for the
// first; services: they are not the same.
func newWorkloads(before *workloads, w world, services bool) *workloads {
	out := &workloads{world: w, lists: make(map[string][]*serviceWorkloads), services: services}
	if before == nil {
		return out
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	out.before = maps.Clone(before.lists)
	for namespace, list := range before.before {
		// What was not asked for since may have other services.
		if _, newer := out.before[namespace]; !newer && !before.services {
			out.before[namespace] = list
		}
	}
	return out
}

// at returns the workloads of a namespace at some addresses in their canonical form, in the order of
// precedence of the services.
func (x *workloads) at(namespace string, addresses []string) (out []workload) {
	for _, s := range x.in(namespace) {
		for _, a := range addresses {
			for _, e := range s.byAddress[a] {
				out = append(out, workload{s.service, e})
			}
		}
	}
	return out
}

// in returns the services of a namespace.
func (x *workloads) in(namespace string) []*serviceWorkloads {
	x.mu.Lock()
	defer x.mu.Unlock()
	list, known := x.lists[namespace]
	if known {
		return list
	}
	before := x.before[namespace]
	services := make([]*registry.Service, 0, len(before))
	if before != nil && !x.services {
		for _, s := range before {
			services = append(services, s.service)
		}
	} else {
		services = servicesIn(x.world, namespace)
	}
	list = make([]*serviceWorkloads, 0, len(services))
	for _, svc := range services {
		list = append(list, x.of(svc, before))
	}
	x.lists[namespace] = list
	return list
}

// servicesIn returns the services of a namespace, in the order of precedence.
func servicesIn(w world, namespace string) (out []*registry.Service) {
	for _, list := range w.hosts() {
		for _, svc := range list {
			if svc.Attributes.Namespace == namespace {
				out = append(out, svc)
			}
		}
	}
	slices.SortFunc(out, registry.ComparePrecedence)
	return out
}

// of returns the workloads of a service, those from before if they are the same.
func (x *workloads) of(svc *registry.Service, before []*serviceWorkloads) *serviceWorkloads {
	endpoints := x.world.endpoints(svc.Hostname, svc.Attributes.Namespace)
	i := slices.IndexFunc(before, func(s *serviceWorkloads) bool { return s.service == svc })
	if i >= 0 && before[i].endpoints == endpoints {
		return before[i]
	}
	out := &serviceWorkloads{service: svc, endpoints: endpoints, byAddress: make(map[string][]*registry.Endpoint)}
	for e := range endpoints.All() {
		for _, a := range e.Addresses {
			a = canonicalAddress(a)
			out.byAddress[a] = append(out.byAddress[a], e)
		}
	}
	return out
}
