// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// serviceName is how services are found.
type serviceName struct {
	hostname  registry.Hostname
	namespace string
}

// directory finds services by name. Readers take no lock. The entries of the map
// are part of the services, so that a name is kept once.
type directory struct {
	services *pmap.Live[serviceName, *service]

	mu sync.Mutex // held by writers of services; taken after that of a service
}

func newDirectory() *directory {
	return &directory{services: pmap.Map[serviceName, *service]{}.Live()}
}

// find returns a service, or nil.
func (d *directory) find(name serviceName) *service {
	s, _ := d.services.Get(name)
	return s
}

// findOrAdd returns a service, which it adds if it is not there.
func (d *directory) findOrAdd(name serviceName) *service {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.find(name)
	if s == nil {
		s = &service{}
		s.Entry = pmap.Entry[serviceName, *service]{Key: name, Value: s}
		d.services.Put(&s.Entry)
	}
	return s
}

// remove takes a service out.
func (d *directory) remove(s *service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.services.Delete(s.Key)
}

// all yields the services: each that is there all the time, once.
func (d *directory) all(yield func(*service) bool) {
	d.services.Entries(func(e *pmap.Entry[serviceName, *service]) bool { return yield(e.Value) })
}
