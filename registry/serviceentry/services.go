// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Services implements registry.ServiceDiscovery. The slice is made once after
// each change.
func (c *Controller) Services() []*registry.Service {
	s := c.publisher.State()
	if s.allocated != nil {
		return s.allocated().services
	}
	return s.services.List()
}

// GetService implements registry.ServiceDiscovery.
func (c *Controller) GetService(hostname registry.Hostname) *registry.Service {
	s := c.publisher.State()
	best := s.services.Get(hostname)
	if s.allocated != nil {
		return s.allocated().of(best)
	}
	return best
}

// ServiceSnapshot implements registry.ServiceSnapshotter. It returns nil with
// AllocateByHash: the addresses of all services may then change with any of them.
func (c *Controller) ServiceSnapshot() *registry.ServiceSet { return c.setOf(c.publisher.State()) }

func (c *Controller) setOf(s *state) *registry.ServiceSet {
	if c.options.AddressAllocation == AllocateByHash {
		return nil
	}
	return s.services
}

// ServicesAt implements xdsupdate.RootReader.
func (c *Controller) ServicesAt(discovery registry.ServiceSnapshotter, root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	if discovery != c {
		return nil, false
	}
	return c.publisher.ServicesAt(root)
}

// allocation is services with the addresses that they are given.
type allocation struct {
	services []*registry.Service
	// copies maps a service without an address to its copy with one.
	copies map[*registry.Service]*registry.Service
}

// allocation returns a function that allocates when it is called first, nil if
// addresses are not allocated by hash.
func (c *Controller) allocation(services *registry.ServiceSet) func() *allocation {
	if c.options.AddressAllocation != AllocateByHash {
		return nil
	}
	return sync.OnceValue(func() *allocation {
		list := services.List()
		a := &allocation{make([]*registry.Service, len(list)), allocateByHash(list, c.logger)}
		for i, s := range list {
			a.services[i] = a.of(s)
		}
		return a
	})
}

// of returns a service with its addresses.
func (a *allocation) of(s *registry.Service) *registry.Service {
	if t, ok := a.copies[s]; ok {
		return t
	}
	return s
}
