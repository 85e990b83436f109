// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sync"

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

// entry is a service with its endpoints, in the order of
// registry.CompareEndpoints. It is immutable.
type entry struct {
	service   *registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
}

// member is an endpoint of a service.
type member struct {
	service  serviceKey
	endpoint *registry.Endpoint
}

// state is everything that the registry knows. It is immutable: a change makes
// another one, which shares what did not change.
type state struct {
	entries pmap.Map[serviceKey, *entry]
	// services is in the order of registry.CompareServices. list is its slice,
	// made when it is asked for.
	services cow.Sorted[*registry.Service]
	list     func() []*registry.Service
	// byHost has the services of a host name, the first of which is what a
	// lookup returns.
	byHost pmap.Map[registry.Hostname, []*registry.Service]
	// byAddress has the endpoints of an address, the order having no meaning.
	byAddress pmap.Map[string, []member]

	workloads pmap.Map[registry.WorkloadKey, *registry.WorkloadInstance]
	// workloadsByAddress has the workloads of an address, the order having no
	// meaning.
	workloadsByAddress pmap.Map[string, []*registry.WorkloadInstance]

	gateways []registry.NetworkGateway
}

func newState() *state { return (&state{}).withServices(cow.Sorted[*registry.Service]{}) }

// clone returns a copy to be changed before it is published.
func (s *state) clone() *state {
	out := *s
	return &out
}

// withServices sets the sorted services.
func (s *state) withServices(services cow.Sorted[*registry.Service]) *state {
	s.services, s.list = services, sync.OnceValue(services.Slice)
	return s
}

// setEntry adds or replaces a service.
func (s *state) setEntry(e *entry) {
	k := keyOf(e.service)
	old, exists := s.entries.Get(k)
	s.entries = s.entries.Set(k, e)
	if exists && old.service == e.service {
		return
	}
	services := s.services
	hosts, _ := s.byHost.Get(k.hostname)
	hosts = slices.Clone(hosts)
	if exists {
		services, _ = services.Delete(registry.CompareServices, old.service, identical)
		hosts = slices.DeleteFunc(hosts, func(x *registry.Service) bool { return x == old.service })
	}
	hosts = append(hosts, e.service)
	slices.SortFunc(hosts, registry.ComparePrecedence)
	s.byHost = s.byHost.Set(k.hostname, hosts)
	s.withServices(services.Insert(registry.CompareServices, e.service))
}

// deleteService removes a service, whose endpoints must not be indexed any more.
func (s *state) deleteService(service *registry.Service) {
	k := keyOf(service)
	s.entries = s.entries.Delete(k)
	hosts, _ := s.byHost.Get(k.hostname)
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(x *registry.Service) bool { return x == service })
	if len(hosts) == 0 {
		s.byHost = s.byHost.Delete(k.hostname)
	} else {
		s.byHost = s.byHost.Set(k.hostname, hosts)
	}
	services, _ := s.services.Delete(registry.CompareServices, service, identical)
	s.withServices(services)
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
