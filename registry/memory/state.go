// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// serviceKey identifies a service.
type serviceKey struct {
	hostname  registry.Hostname
	namespace string
}

// String returns "service namespace/hostname".
func (k serviceKey) String() string { return "service " + k.namespace + "/" + string(k.hostname) }

func keyOf(s *registry.Service) serviceKey {
	return serviceKey{hostname: s.Hostname, namespace: s.Attributes.Namespace}
}

// member is an endpoint of a service.
type member struct {
	service  serviceKey
	endpoint *registry.Endpoint
}

// state is everything that the registry knows. It is immutable: a change makes
// another one, which shares what did not change.
type state struct {
	services *registry.ServiceSet
	// endpoints has those of each service that has any, in the order of
	// registry.CompareEndpoints.
	endpoints pmap.Map[serviceKey, cow.Sorted[*registry.Endpoint]]
	// byAddress has the endpoints of an address, the order having no meaning.
	byAddress pmap.Map[string, []member]

	workloads pmap.Map[registry.WorkloadKey, *registry.WorkloadInstance]
	// workloadsByAddress has the workloads of an address, the order having no
	// meaning.
	workloadsByAddress pmap.Map[string, []*registry.WorkloadInstance]

	gateways []registry.NetworkGateway
}

// clone returns a copy to be changed before it is published.
func (s *state) clone() *state {
	out := *s
	return &out
}

// service returns the service of a key, or nil.
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

// setService puts a service in the place of another one of its key, of which nil
// is none; no service removes the other one.
func (s *state) setService(k serviceKey, old, service *registry.Service) {
	others := s.services.Host(k.hostname)
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
	s.services = s.services.With(k.hostname, services...)
}

// index adds an endpoint to the addresses, unindex removes it.
func (s *state) index(k serviceKey, e *registry.Endpoint) {
	for _, a := range distinct(e.Addresses) {
		members, _ := s.byAddress.Get(a)
		s.byAddress = s.byAddress.Set(a, append(slices.Clip(members), member{service: k, endpoint: e}))
	}
}

func (s *state) unindex(k serviceKey, e *registry.Endpoint) {
	for _, a := range distinct(e.Addresses) {
		members, _ := s.byAddress.Get(a)
		members = slices.DeleteFunc(slices.Clone(members), func(m member) bool { return m == member{service: k, endpoint: e} })
		if len(members) == 0 {
			s.byAddress = s.byAddress.Delete(a)
			continue
		}
		s.byAddress = s.byAddress.Set(a, members)
	}
}

// distinct returns the values of a short list without repetitions.
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

func identical[T any](a, b *T) bool { return a == b }
