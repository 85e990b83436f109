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

// directory finds what is known of services by their names, and gives all of it as
// it is at one moment. Readers take no lock. The entries of the map are part of
// the views, so that a change of a service is one allocation.
type directory struct {
	views *pmap.Live[serviceName, *ServiceEndpoints]

	mu sync.Mutex // held by writers of services and by snapshot; taken after that of a service
}

func newDirectory() *directory {
	return &directory{views: pmap.Map[serviceName, *ServiceEndpoints]{}.Live()}
}

// find returns the last view of a service, or nil.
func (d *directory) find(name serviceName) *ServiceEndpoints {
	v, _ := d.views.Get(name)
	return v
}

// findOrAdd returns a service, which it adds, with a view without shards, if it is
// not there.
func (d *directory) findOrAdd(name serviceName) *service {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.find(name); v != nil {
		return v.service
	}
	v := newView(name, &service{})
	d.views.Put(&v.entry)
	return v.service
}

// publish shows a view in place of the one before.
func (d *directory) publish(v *ServiceEndpoints) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.views.Put(&v.entry)
}

// remove takes a service out.
func (d *directory) remove(name serviceName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.views.Delete(name)
}

// snapshot returns the views as they are now. It costs the same whatever their
// number; the changes after it copy the part of the map that they are in, once.
func (d *directory) snapshot() pmap.Map[serviceName, *ServiceEndpoints] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.views.Snapshot()
}
