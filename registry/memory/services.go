// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
)

// SetService adds a service, or replaces that of the same host name and
// namespace, whose endpoints it keeps. A service equal to the one that is there
// is not reported.
//
// A service without Attributes.Provider, Attributes.Name or DefaultAddress is
// kept with the provider of the registry, its host name and
// registry.UnspecifiedAddress; the caller's object is not modified.
//
// The error is ErrInvalid if the service has no host name, a port number is out
// of range, port names or numbers repeat, or one of several ports has no name.
func (r *Registry) SetService(service *registry.Service) error {
	if service == nil {
		return fmt.Errorf("set service: %w: nil", ErrInvalid)
	}
	k := keyOf(service)
	if reason := checkService(service); reason != "" {
		return invalid("set", k, reason)
	}
	service = r.complete(service)
	return r.commit(func(s *state) (*state, change, error) {
		old := s.service(k)
		if old != nil && same(old, service) {
			return s, change{}, nil
		}
		next := s.clone()
		next.setService(k, old, service)
		switch {
		case old == nil:
			return next, change{service: &serviceChange{curr: service, event: registry.EventAdd}}, nil
		case old.Equal(service):
			return next, change{}, nil
		default:
			return next, change{service: &serviceChange{prev: old, curr: service, event: registry.EventUpdate}}, nil
		}
	})
}

// same reports whether the services are equal in every field. Equal leaves out what
// proxies do not see.
func same(s, t *registry.Service) bool {
	return s.Equal(t) && s.CreationTime.Equal(t.CreationTime) && s.ResourceVersion == t.ResourceVersion
}

// complete returns the service with the attributes that it lacks.
func (r *Registry) complete(s *registry.Service) *registry.Service {
	if s.Attributes.Provider != "" && s.Attributes.Name != "" && s.DefaultAddress != "" {
		return s
	}
	out := *s
	if out.Attributes.Provider == "" {
		out.Attributes.Provider = r.opts.Provider
	}
	if out.Attributes.Name == "" {
		out.Attributes.Name = string(out.Hostname)
	}
	if out.DefaultAddress == "" {
		out.DefaultAddress = registry.UnspecifiedAddress
	}
	return &out
}

// RemoveService removes a service with its endpoints. The error is
// ErrUnknownService if there is none.
func (r *Registry) RemoveService(hostname registry.Hostname, namespace string) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	return r.commit(func(s *state) (*state, change, error) {
		old := s.service(k)
		if old == nil {
			return s, change{}, fmt.Errorf("remove %s: %w", k, ErrUnknownService)
		}
		next := s.clone()
		for e := range s.endpointsOf(k).All() {
			next.unindex(k, e)
		}
		next.endpoints = s.endpoints.Delete(k)
		next.setService(k, old, nil)
		return next, change{service: &serviceChange{curr: old, event: registry.EventDelete}}, nil
	})
}
