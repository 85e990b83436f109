// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"
	"reflect"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// registration is the time of one registry in a Controller.
type registration struct {
	instance registry.Instance
	// kubernetes: the services merge with those of other clusters.
	kubernetes bool
	cluster    registry.ClusterID
	// own is the stop of AddRegistryAndRun; nil is never closed.
	own <-chan struct{}
	// gone is closed when the registry is deleted or replaced.
	gone chan struct{}

	// What follows is guarded by the controller's lock.

	started bool
	retired bool
	// cancels end the subscriptions.
	cancels []func()
	// services and workloads are what handlers have been told.
	services  map[serviceKey]*registry.Service
	workloads map[registry.WorkloadKey]*registry.WorkloadInstance
	// inherited is what handlers were told by the predecessor and not yet by this
	// registry.
	inherited          map[serviceKey]*registry.Service
	inheritedWorkloads map[registry.WorkloadKey]*registry.WorkloadInstance
	// watchesWorkloads: the workloads are subscribed to.
	watchesWorkloads bool
}

func newRegistration(r registry.Instance, own <-chan struct{}) *registration {
	return &registration{
		instance: r, kubernetes: r.Provider() == registry.Kubernetes, cluster: r.Cluster(),
		own: own, gone: make(chan struct{}),
		services:  map[serviceKey]*registry.Service{},
		workloads: map[registry.WorkloadKey]*registry.WorkloadInstance{},
	}
}

func (r *registration) attributes() []any {
	return []any{slog.String("provider", string(r.instance.Provider())), slog.String("cluster", string(r.cluster))}
}

// serves reports whether proxies of a cluster may ask the registry: a Kubernetes
// registry knows those of its own cluster, any other all.
func (r *registration) serves(cluster registry.ClusterID) bool {
	return !r.kubernetes || r.cluster == cluster
}

// insert adds a registry at its place.
func (c *Controller) insert(reg *registration) {
	c.edit(func(m *merged) *merged {
		at := len(m.registrations)
		if reg.kubernetes {
			at = slices.IndexFunc(m.registrations, func(r *registration) bool { return !r.kubernetes })
			if at < 0 {
				at = len(m.registrations)
			}
		}
		// Its services are read by the next reader.
		return m.with(slices.Insert(slices.Clone(m.registrations), at, reg), slices.Insert(slices.Clone(m.lists), at, nil))
	})
}

// replace puts a registry in the place of the one of the same cluster and
// provider, which it returns; nil if there was none.
func (c *Controller) replace(reg *registration) (old *registration) {
	c.edit(func(m *merged) *merged {
		at := slices.IndexFunc(m.registrations, func(r *registration) bool {
			return r.cluster == reg.cluster && r.instance.Provider() == reg.instance.Provider()
		})
		old = nil
		if at < 0 {
			return m
		}
		old = m.registrations[at]
		registrations, lists := slices.Clone(m.registrations), slices.Clone(m.lists)
		registrations[at], lists[at] = reg, reg.instance.Services()
		return m.with(registrations, lists)
	})
	return old
}

// cut takes out the first registry that is wanted, and returns it.
func (c *Controller) cut(wanted func(registry.Instance) bool) (cut *registration) {
	c.edit(func(m *merged) *merged {
		cut = nil
		at := slices.IndexFunc(m.registrations, func(r *registration) bool { return wanted(r.instance) })
		if at < 0 {
			return m
		}
		cut = m.registrations[at]
		return m.with(slices.Delete(slices.Clone(m.registrations), at, at+1), slices.Delete(slices.Clone(m.lists), at, at+1))
	})
	return cut
}

// edit replaces merged by what f makes of it. f may be called more than once.
func (c *Controller) edit(f func(*merged) *merged) {
	for {
		old := c.merged.Load()
		if c.merged.CompareAndSwap(old, f(old)) {
			return
		}
	}
}

// same reports whether two instances are the same registry, be it Claimed or not.
func same(r, s registry.Instance) bool {
	r, s = unclaimed(r), unclaimed(s)
	return reflect.ValueOf(r).Comparable() && reflect.ValueOf(s).Comparable() && r == s
}

func unclaimed(r registry.Instance) registry.Instance {
	if claimed, ok := r.(Claimed); ok {
		return claimed.Instance
	}
	return r
}
