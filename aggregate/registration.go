// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"
	"reflect"
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// registration is the membership of one registry in a Controller.
type registration struct {
	instance registry.Instance
	shard    xdsupdate.ShardKey
	// writer is the updater that was passed to create. It holds updates back until join is called.
	writer xdsupdate.ShardWriter
	join   func(first *xdsupdate.Update)
	// events provides the Subscribe methods of the registry, or a substitute.
	events registry.Simple
	// snapshotter is nil if the registry is not a ServiceSnapshotter. In that case listed is its
	// last list.
	snapshotter registry.ServiceSnapshotter
	listed      atomic.Pointer[listed]
	// own is the stop of AddRegistryAndRun; nil is never closed.
	own <-chan struct{}
	// gone is closed after the registry was deleted or replaced, and retired.
	gone chan struct{}

	// The controller's lock guards the following fields.

	started bool
	// retired means that the registry was deleted or replaced. Later events are ignored.
	retired bool
	// cancels end the subscriptions.
	cancels []func()
	// services and workloads are the state that handlers have been notified about.
	services  known[serviceKey, *registry.Service]
	workloads known[registry.WorkloadKey, *registry.WorkloadInstance]
	// contested are workloads with events of predecessors that must not be the last events at
	// receivers.
	contested map[registry.WorkloadKey]struct{}
	// left are the workloads that the registry announced until its subscriptions ended and that
	// have not been retracted yet.
	left map[registry.WorkloadKey]*registry.WorkloadInstance
}

func newRegistration(r registry.Instance, own <-chan struct{}) *registration {
	reg := &registration{
		instance: r, shard: xdsupdate.ShardKeyOf(r), own: own, gone: make(chan struct{}),
		events:    registry.Simple{Controller: r, ServiceDiscovery: r},
		services:  known[serviceKey, *registry.Service]{},
		workloads: known[registry.WorkloadKey, *registry.WorkloadInstance]{},
	}
	reg.snapshotter, _ = registry.As[registry.ServiceSnapshotter](r)
	reg.listed.Store(&listed{set: &registry.ServiceSet{}})
	return reg
}

func (r *registration) attributes() []any {
	return []any{slog.String("provider", string(r.shard.Provider)), slog.String("cluster", string(r.shard.Cluster))}
}

// kubernetes reports whether the services merge with services of other clusters.
func (r *registration) kubernetes() bool { return r.shard.Provider == registry.Kubernetes }

// serves reports whether queries about proxies of a cluster, which may be unknown, go to the registry. A
// Kubernetes registry knows the proxies of its own cluster, any other registry all proxies.
func (r *registration) serves(cluster registry.ClusterID) bool {
	return cluster == "" || !r.kubernetes() || r.shard.Cluster == cluster
}

// is reports whether instance is the registry of r.
func (r *registration) is(instance registry.Instance) bool {
	return reflect.ValueOf(r.instance).Comparable() && reflect.ValueOf(instance).Comparable() && r.instance == instance
}

// insert returns m with an additional registry. The next read merges its services, so adding many
// registries costs one merge.
func (m *merged) insert(reg *registration) *merged {
	at := len(m.registrations)
	if reg.kubernetes() {
		at = slices.IndexFunc(m.registrations, func(r *registration) bool { return !r.kubernetes() })
		if at < 0 {
			at = len(m.registrations)
		}
	}
	return &merged{
		registrations: slices.Insert(slices.Clone(m.registrations), at, reg),
		sets:          slices.Insert(slices.Clone(m.sets), at, nil), services: m.services,
	}
}

// replace returns m with reg in the place of old.
func (m *merged) replace(old, reg *registration, services *registry.ServiceSet) *merged {
	at := slices.Index(m.registrations, old)
	registrations, sets := slices.Clone(m.registrations), slices.Clone(m.sets)
	registrations[at], sets[at] = reg, services
	return m.with(registrations, sets)
}

// remove returns m without a registry.
func (m *merged) remove(reg *registration) *merged {
	at := slices.Index(m.registrations, reg)
	return m.with(slices.Delete(slices.Clone(m.registrations), at, at+1), slices.Delete(slices.Clone(m.sets), at, at+1))
}

// find returns the first registration that is wanted, or nil.
func (m *merged) find(wanted func(*registration) bool) *registration {
	if i := slices.IndexFunc(m.registrations, wanted); i >= 0 {
		return m.registrations[i]
	}
	return nil
}

// editLocked replaces merged by the result of f. The lock prevents other changes of the list of
// registries, but readers may publish new services meanwhile, so f may be called more than once.
func (c *Controller) editLocked(f func(*merged) *merged) {
	for {
		old := c.merged.Load()
		if c.merged.CompareAndSwap(old, f(old)) {
			return
		}
	}
}
