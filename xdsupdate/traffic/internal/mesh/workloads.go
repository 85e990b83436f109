// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
)

// Workloads indexes the endpoints of services by namespace and address, for one world. It reuses
// unchanged results of the previous world. Namespaces are indexed on demand.
type Workloads struct {
	world *World
	// before are the lists of earlier worlds. services is set if services have changed since.
	before   map[string][]*serviceWorkloads
	services bool
	lists    memo.Results[string, []*serviceWorkloads]
}

// serviceWorkloads are the endpoints of a service by canonical address. It is immutable.
type serviceWorkloads struct {
	service   *registry.Service
	endpoints *xdsupdate.ServiceEndpoints
	byAddress map[string][]*registry.Endpoint
}

// Workload is an endpoint of a service.
type Workload struct {
	Service  *registry.Service
	Endpoint *registry.Endpoint
}

// NewWorkloads returns the workloads of a world, based on the previous ones, which may be nil. The
// argument services says that services have changed.
func NewWorkloads(before *Workloads, w *World, services bool) *Workloads {
	out := &Workloads{world: w, services: services}
	if before == nil {
		return out
	}
	out.before = before.lists.All()
	for namespace, list := range before.before {
		// Lists that were not requested since then are only valid if services have not changed.
		if _, newer := out.before[namespace]; !newer && !before.services {
			out.before[namespace] = list
		}
	}
	return out
}

// At returns the workloads of a namespace at some canonical addresses, in the order of precedence
// of their services.
func (x *Workloads) At(namespace string, addresses []string) (out []Workload) {
	for _, s := range x.lists.Get(namespace, func() []*serviceWorkloads { return x.in(namespace) }) {
		for _, a := range addresses {
			for _, e := range s.byAddress[a] {
				out = append(out, Workload{s.service, e})
			}
		}
	}
	return out
}

func (x *Workloads) in(namespace string) []*serviceWorkloads {
	before := x.before[namespace]
	known := make(map[*registry.Service]*serviceWorkloads, len(before))
	services := make([]*registry.Service, 0, len(before))
	for _, s := range before {
		known[s.service], services = s, append(services, s.service)
	}
	if before == nil || x.services {
		services = servicesIn(x.world, namespace)
	}
	list := make([]*serviceWorkloads, 0, len(services))
	for _, svc := range services {
		list = append(list, x.of(svc, known[svc]))
	}
	return list
}

// servicesIn returns the services of a namespace, in the order of precedence.
func servicesIn(w *World, namespace string) (out []*registry.Service) {
	for _, list := range w.Hosts() {
		for _, svc := range list {
			if svc.Attributes.Namespace == namespace {
				out = append(out, svc)
			}
		}
	}
	slices.SortFunc(out, registry.ComparePrecedence)
	return out
}

// of returns the workloads of a service: those before, which may be nil, if its endpoints are
// unchanged.
func (x *Workloads) of(svc *registry.Service, before *serviceWorkloads) *serviceWorkloads {
	endpoints := x.world.Endpoints(svc)
	if before != nil && before.endpoints == endpoints {
		return before
	}
	out := &serviceWorkloads{service: svc, endpoints: endpoints, byAddress: make(map[string][]*registry.Endpoint)}
	for e := range endpoints.All() {
		for _, a := range e.Addresses {
			a = CanonicalAddress(a)
			out.byAddress[a] = append(out.byAddress[a], e)
		}
	}
	return out
}

// CanonicalAddress is ipaddr.Canonical without parsing IPv4 addresses, which have only one
// spelling.
func CanonicalAddress(address string) string {
	if strings.IndexByte(address, ':') < 0 {
		return address
	}
	return ipaddr.Canonical(address)
}
