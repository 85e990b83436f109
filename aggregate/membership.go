// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// AddRegistry adds a registry and returns it: a Kubernetes registry after the last of
// its kind, another one at the end. Run runs it: when Run is called, or at once if it was.
// In Istio 1.30 a registry that is added after Run never runs. create makes it with an updater of its own, an xdsupdate.ShardWriter: what it writes
// goes to the Controller's updaters, and is dropped once the registry is deleted or
// replaced, or another one is made for its shard, however late it comes.
//
// A registry that writes to another updater is not kept from that.
func (c *Controller) AddRegistry(create func(updater xdsupdate.XDSUpdater) registry.Instance) registry.Instance {
	return c.addAndRun(c.newRegistration(create, nil)).instance
}

// AddRegistryAndRun is AddRegistry for a registry that runs until stop is closed, or, as others,
// the registry is deleted or replaced, or Run ends. A nil stop is never closed.
func (c *Controller) AddRegistryAndRun(
	create func(updater xdsupdate.XDSUpdater) registry.Instance, stop <-chan struct{},
) registry.Instance {
	return c.addAndRun(c.newRegistration(create, stop)).instance
}

// UpdateRegistry puts a registry in the place of the one of the same cluster and
// provider, in one step, or adds it if there is none, and returns it. create makes it as
// in AddRegistry; when it returns, the registry should have all its services, so that
// none is missing meanwhile. Before Run, Run will run it; afterwards its program does.
// Service and workload handlers receive the difference. What the predecessor has written
// of services for which the registry writes nothing is removed once the registry has
// synced.
func (c *Controller) UpdateRegistry(create func(updater xdsupdate.XDSUpdater) registry.Instance) registry.Instance {
	return c.update(c.newRegistration(create, nil)).instance
}

// DeleteRegistry removes the first registry of a cluster and provider and reports
// whether there was one. It is no longer queried, and its events are dropped;
// handlers receive a Delete of its services and workloads, its workloads are
// retracted from those registries of the Controller that had taken them, its
// shard is removed from the updaters, and its services are pushed. A registry
// that Run runs is stopped, without waiting for it.
func (c *Controller) DeleteRegistry(cluster registry.ClusterID, provider registry.ProviderID) bool {
	shard := xdsupdate.ShardKey{Cluster: cluster, Provider: provider}
	return c.remove(func(r *registration) bool { return r.shard == shard })
}

// DeleteRegistryIfCurrent is DeleteRegistry for this very instance; it returns
// false if the instance is not, or no longer, one of the registries.
func (c *Controller) DeleteRegistryIfCurrent(r registry.Instance) bool {
	return c.remove(func(reg *registration) bool { return reg.is(r) })
}

// newRegistration makes a registry with an updater of its own.
func (c *Controller) newRegistration(
	create func(updater xdsupdate.XDSUpdater) registry.Instance, own <-chan struct{},
) *registration {
	writer := c.updaters.writer()
	return newRegistration(create(writer), writer, own)
}

func (c *Controller) add(reg *registration) *registration {
	c.mu.Lock()
	c.editLocked(func(m *merged) *merged { return m.insert(reg) })
	c.mu.Unlock()
	c.updating(reg.shard, func() { c.pushDifference(nil, reg.snapshot()) })
	c.subscribeTo(reg)
	c.gatewaysChanged(nil, reg)
	c.logger.Debug("registry added", reg.attributes()...)
	return reg
}

func (c *Controller) addAndRun(reg *registration) *registration {
	c.add(reg)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran {
		c.startLocked(reg)
	}
	return reg
}

func (c *Controller) update(reg *registration) *registration {
	services := reg.snapshot()
	c.mu.Lock()
	old := c.merged.Load().find(func(r *registration) bool { return r.shard == reg.shard })
	if old == nil {
		c.mu.Unlock()
		return c.add(reg)
	}
	c.editLocked(func(m *merged) *merged { return m.replace(old, reg, services) })
	// From here on what handlers know of old is what they know of reg.
	reg.services, reg.workloads = old.services, old.workloads
	cancels := old.retireLocked()
	c.mu.Unlock()
	defer close(old.gone) // when it was retired: one that has stopped replays nothing
	c.subscribeTo(reg)
	c.retire(old)
	for _, cancel := range cancels {
		cancel()
	}
	c.dropInherited(reg)
	c.removeShards(old)
	c.pruneAfter(reg)
	c.updating(old.shard, func() { c.pushDifference(old.snapshot(), services) })
	c.queue.Drain()
	c.gatewaysChanged(old, reg)
	c.retractLeft(old)
	c.logger.Debug("registry replaced", reg.attributes()...)
	return reg
}

// remove removes the first registry that is wanted.
func (c *Controller) remove(wanted func(*registration) bool) bool {
	c.mu.Lock()
	reg := c.merged.Load().find(wanted)
	if reg == nil {
		c.mu.Unlock()
		return false
	}
	c.editLocked(func(m *merged) *merged { return m.remove(reg) })
	c.goneLocked(reg)
	cancels := reg.retireLocked()
	c.mu.Unlock()
	defer close(reg.gone) // when it was retired: one that has stopped replays nothing
	c.retire(reg)
	for _, cancel := range cancels {
		cancel()
	}
	c.removeShards(reg)
	c.updating(reg.shard, func() { c.pushDifference(reg.snapshot(), nil) })
	c.queue.Drain()
	c.gatewaysChanged(reg, nil)
	c.retractLeft(reg)
	c.logger.Debug("registry deleted", reg.attributes()...)
	return true
}

// retireLocked ends the time of a registry; the caller calls what it returns
// without the lock.
func (r *registration) retireLocked() (cancels []func()) {
	r.retired = true
	r.left = map[registry.WorkloadKey]*registry.WorkloadInstance{}
	for key, n := range r.workloads {
		r.left[key] = n.value
	}
	cancels, r.cancels = r.cancels, nil
	return cancels
}

// removeShards takes the shards of a registry that has left from it, and removes them
// but for those of a present one.
func (c *Controller) removeShards(left *registration) {
	shards := left.writer.Shards()
	left.writer.Close()
	if !slices.Contains(shards, left.shard) {
		shards = append(shards, left.shard) // which it may have written to without a writer
	}
	remover := c.updaters.writer()
	defer remover.Close()
	for _, shard := range shards {
		if !c.hasShard(shard) {
			c.updating(shard, func() { remover.RemoveShard(shard) })
		}
	}
}

// hasShard reports whether a shard is that of a present registry, or belongs to one.
func (c *Controller) hasShard(shard xdsupdate.ShardKey) bool {
	return c.merged.Load().find(func(r *registration) bool {
		return r.shard == shard || slices.Contains(r.writer.Shards(), shard)
	}) != nil
}

// pushDifference asks for a push of the services in which two sets differ: from a
// registry that has come or gone those who read the services do not learn of them.
func (c *Controller) pushDifference(before, after *registry.ServiceSet) {
	readers := c.updaters.attached()
	if readers == nil {
		return
	}
	keys := map[xdsupdate.ConfigKey]struct{}{}
	for host := range after.ChangedSince(before) {
		for _, s := range slices.Concat(before.Host(host), after.Host(host)) {
			keys[xdsupdate.ServiceKey(host, s.Attributes.Namespace)] = struct{}{}
		}
	}
	if len(keys) == 0 {
		return // a request without keys would be one for everything
	}
	readers.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: keys, Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1},
	})
}
