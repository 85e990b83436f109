// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// SetService adds a service, or replaces the service of the same host name and namespace and keeps
// its endpoints. A service equal to the existing one is not reported.
//
// A service without Attributes.Provider, Attributes.Name or DefaultAddress gets the provider of the
// registry, its host name and registry.UnspecifiedAddress; the caller's object is not modified.
//
// The error is an *InvalidError if the service has no host name, a port number is out of range,
// port names or numbers repeat, or one of several ports has no name.
func (r *Registry) SetService(service *registry.Service) error {
	if service == nil {
		return fmt.Errorf("set service: %w: nil", ErrInvalid)
	}
	if err := checkService(service); err != nil {
		return fmt.Errorf("set %w", err)
	}
	service = r.complete(service)
	k := keyOf(service)
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		old := s.service(k)
		if old != nil && same(old, service) {
			return s, nil, nil
		}
		next := s.clone()
		next.setService(k, old, service)
		switch {
		case old == nil:
			return next, serviceChange(nil, service, registry.EventAdd), nil
		case old.Equal(service):
			return next, nil, nil
		default:
			return next, serviceChange(old, service, registry.EventUpdate), nil
		}
	})
}

// serviceChange returns the change of one service.
func serviceChange(prev, curr *registry.Service, event registry.Event) *publish.Change {
	k := keyOf(curr)
	c := &struct {
		publish.Change
		services [1]publish.ServiceUpdate
		pushes   [1]publish.Push
		changes  [1]publish.ServiceChange
	}{
		services: [1]publish.ServiceUpdate{{Hostname: k.hostname, Namespace: k.namespace, Event: event}},
		pushes:   [1]publish.Push{{Reason: xdsupdate.ReasonService, Key: xdsupdate.ServiceKey(k.hostname, k.namespace)}},
		changes:  [1]publish.ServiceChange{{Prev: prev, Curr: curr, Event: event}},
	}
	c.Services, c.Pushes, c.ServiceChanges = c.services[:], c.pushes[:], c.changes[:]
	return &c.Change
}

// same reports whether the services are equal in every field, including the ones that Equal ignores
// because proxies do not see them.
func same(s, t *registry.Service) bool {
	return s.Equal(t) && s.CreationTime.Equal(t.CreationTime) && s.ResourceVersion == t.ResourceVersion
}

// complete returns the service with defaults for missing attributes.
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

// RemoveService removes a service with its endpoints. The error is ErrUnknownService if there is
// none.
func (r *Registry) RemoveService(hostname registry.Hostname, namespace string) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		old := s.service(k)
		if old == nil {
			return s, nil, fmt.Errorf("remove %s: %w", k, ErrUnknownService)
		}
		next := s.clone()
		next.dropEndpoints(k)
		next.setService(k, old, nil)
		return next, serviceChange(nil, old, registry.EventDelete), nil
	})
}
