// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// serviceKey identifies a service.
type serviceKey struct {
	hostname  registry.Hostname
	namespace string
}

// String returns "service namespace/hostname", without the namespace if that is empty.
func (k serviceKey) String() string {
	return excerpt.Object("service", k.namespace, string(k.hostname))
}

func keyOf(s *registry.Service) serviceKey {
	return serviceKey{hostname: s.Hostname, namespace: s.Attributes.Namespace}
}

// serviceEndpoint is an endpoint of a service.
type serviceEndpoint struct {
	service  serviceKey
	endpoint *registry.Endpoint
}

// state is the complete content of the registry. It is immutable: a change creates another state,
// which shares the unchanged parts.
type state struct {
	services *registry.ServiceSet
	// endpoints has the endpoints of each service, in the order of registry.CompareEndpoints.
	// Services without endpoints are not in it.
	endpoints pmap.Map[serviceKey, cow.Sorted[*registry.Endpoint]]
	// byAddress has the endpoints of an address, in unspecified order.
	byAddress pmap.Map[string, []serviceEndpoint]

	workloads pmap.Map[registry.WorkloadKey, *registry.WorkloadInstance]
	// workloadsByAddress has the workloads of an address, in unspecified order.
	workloadsByAddress pmap.Map[string, []*registry.WorkloadInstance]

	gateways []registry.NetworkGateway
}

// sortedWorkloads returns all workloads in the order of registry.CompareWorkloads.
func (s *state) sortedWorkloads() []*registry.WorkloadInstance {
	all := make([]*registry.WorkloadInstance, 0, s.workloads.Len())
	for _, w := range s.workloads.All() {
		all = append(all, w)
	}
	slices.SortFunc(all, registry.CompareWorkloads)
	return all
}

// clone returns a copy that may be changed before it is published.
func (s *state) clone() *state {
	out := *s
	return &out
}

// service returns the service with a key, or nil.
func (s *state) service(k serviceKey) *registry.Service {
	for _, service := range s.services.Host(k.hostname) {
		if service.Attributes.Namespace == k.namespace {
			return service
		}
	}
	return nil
}

// endpointsOf returns the endpoints of a service.
func (s *state) endpointsOf(k serviceKey) cow.Sorted[*registry.Endpoint] {
	endpoints, _ := s.endpoints.Get(k)
	return endpoints
}

// setService replaces a service of a key by another one. A nil old adds, a nil service removes.
func (s *state) setService(k serviceKey, old, service *registry.Service) {
	s.services = s.services.With(k.hostname, replaced(s.services.Host(k.hostname), old, service)...)
}

// replaced returns the services of a host name with old replaced by service. A nil old adds, a nil
// service removes.
func replaced(others []*registry.Service, old, service *registry.Service) []*registry.Service {
	services := make([]*registry.Service, 0, len(others)+1)
	for _, other := range others {
		if other != old {
			services = append(services, other)
		}
	}
	if service != nil {
		services = append(services, service)
	}
	slices.SortFunc(services, registry.ComparePrecedence)
	return services
}

// setEndpoints replaces the endpoints of a service. The changes are the difference.
func (s *state) setEndpoints(k serviceKey, endpoints publish.Endpoints, changes []xdsupdate.EndpointChange) {
	for _, c := range changes {
		if c.Old != nil {
			s.unindex(k, c.Old)
		}
		if c.New != nil {
			s.index(k, c.New)
		}
	}
	if endpoints.Len() == 0 {
		s.endpoints = s.endpoints.Delete(k)
	} else {
		s.endpoints = s.endpoints.Set(k, endpoints)
	}
}

// dropEndpoints removes the endpoints of a removed service.
func (s *state) dropEndpoints(k serviceKey) {
	for e := range s.endpointsOf(k).All() {
		s.unindex(k, e)
	}
	s.endpoints = s.endpoints.Delete(k)
}

// index adds an endpoint to the index by address, unindex removes it.
func (s *state) index(k serviceKey, e *registry.Endpoint) {
	s.byAddress = withAddresses(s.byAddress, e.Addresses, serviceEndpoint{service: k, endpoint: e})
}

func (s *state) unindex(k serviceKey, e *registry.Endpoint) {
	s.byAddress = withoutAddresses(s.byAddress, e.Addresses, serviceEndpoint{service: k, endpoint: e})
}

// withAddresses returns an index by address with a value at some addresses.
func withAddresses[V comparable](index pmap.Map[string, []V], addresses []string, v V) pmap.Map[string, []V] {
	for _, a := range distinct(addresses) {
		values, _ := index.Get(a)
		index = index.Set(a, append(slices.Clip(values), v))
	}
	return index
}

// withoutAddresses undoes withAddresses.
func withoutAddresses[V comparable](index pmap.Map[string, []V], addresses []string, v V) pmap.Map[string, []V] {
	for _, a := range distinct(addresses) {
		values, _ := index.Get(a)
		values = slices.DeleteFunc(slices.Clone(values), func(x V) bool { return x == v })
		if len(values) == 0 {
			index = index.Delete(a)
		} else {
			index = index.Set(a, values)
		}
	}
	return index
}

// distinct returns the values of a short list without duplicates.
func distinct(values []string) []string {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			out := slices.Clone(values)
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	return values
}
