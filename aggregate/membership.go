// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// AddRegistry adds a registry and returns it. A Kubernetes registry is inserted after the last
// Kubernetes registry, any other one at the end. Run runs it, immediately if Run was called before.
// (In Istio 1.30 a registry that is added after Run never runs.)
//
// create makes the registry with an updater of its own, an xdsupdate.ShardWriter, which forwards to
// the Controller's updaters. Its writes have no effect after the registry was deleted or replaced,
// or after a younger registry with a write to the shard joined. The Controller cannot prevent writes of a registry
// that uses another updater.
func (c *Controller) AddRegistry(create func(updater xdsupdate.XDSUpdater) registry.Instance) registry.Instance {
	return c.addAndRun(c.newRegistration(create, nil)).instance
}

// AddRegistryAndRun is AddRegistry for a registry that runs until stop is closed, the registry is
// deleted or replaced, or Run ends. A nil stop is never closed.
func (c *Controller) AddRegistryAndRun(
	create func(updater xdsupdate.XDSUpdater) registry.Instance, stop <-chan struct{},
) registry.Instance {
	return c.addAndRun(c.newRegistration(create, stop)).instance
}

// UpdateRegistry atomically replaces the registry with the same cluster and provider and returns
// the new one. If there is none, it adds the registry. create works as in AddRegistry. The registry
// should have all its services when create returns, because the services of its predecessor end
// then. If Run is called later, it runs the registry; otherwise the host must run it. Service and
// workload handlers receive the difference. The endpoints of the predecessor are removed once the
// registry has synced, except for services that the registry has written.
func (c *Controller) UpdateRegistry(create func(updater xdsupdate.XDSUpdater) registry.Instance) registry.Instance {
	return c.update(c.newRegistration(create, nil)).instance
}

// DeleteRegistry removes the first registry with a cluster and provider and reports whether there
// was one. The Controller stops querying it and drops its events. Handlers receive a Delete of its
// services and workloads, and its workloads are retracted from the registries of the Controller
// that received them. Its shard is removed from the updaters, and a push of its services is
// requested. A registry that Run runs is stopped. DeleteRegistry does not wait for that.
func (c *Controller) DeleteRegistry(cluster registry.ClusterID, provider registry.ProviderID) bool {
	shard := xdsupdate.ShardKey{Cluster: cluster, Provider: provider}
	return c.remove(func(r *registration) bool { return r.shard == shard })
}

// DeleteRegistryIfCurrent is DeleteRegistry for a specific instance. It returns false if the
// instance is not one of the registries.
func (c *Controller) DeleteRegistryIfCurrent(r registry.Instance) bool {
	return c.remove(func(reg *registration) bool { return reg.is(r) })
}

// newRegistration makes a registry with an updater of its own.
func (c *Controller) newRegistration(
	create func(updater xdsupdate.XDSUpdater) registry.Instance, own <-chan struct{},
) *registration {
	if c.updaters.missing() {
		c.logger.Warn("the registries have no updater, so that nothing is pushed: set Options.Updater or create the ads.Server " +
			"before the first registry; xdsupdate.Discard{} means that none is wanted")
	}
	writer, join := c.updaters.made().NewHeld()
	reg := newRegistration(create(writer), own)
	reg.writer, reg.join = writer, join
	return reg
}

func (c *Controller) add(reg *registration) *registration {
	req := difference(nil, c.servicesOf(reg))
	c.mu.Lock()
	c.editLocked(func(m *merged) *merged { return m.insert(reg) })
	c.commitLocked(reg.join, nil, req)
	c.mu.Unlock()
	c.updating(reg.shard, func() { c.updaters.deliver(req) })
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
	services := c.servicesOf(reg)
	reg.writer.Take(reg.shard) // without the lock, because it may call updaters
	old, before := c.lock(func(r *registration) bool { return r.shard == reg.shard })
	if old == nil {
		c.mu.Unlock()
		return c.add(reg)
	}
	c.editLocked(func(m *merged) *merged { return m.replace(old, reg, services) })
	req := difference(before, services)
	c.commitLocked(reg.join, c.leave(old), req)
	// What handlers know about old becomes the state that they know about reg.
	reg.services, reg.workloads = old.services, old.workloads
	cancels := old.retireLocked()
	c.mu.Unlock()
	defer close(old.gone) // after the retirement, because a stopped registry replays nothing
	c.subscribeTo(reg)
	c.retire(old)
	for _, cancel := range cancels {
		cancel()
	}
	c.dropInherited(reg)
	c.updating(old.shard, func() { c.updaters.deliver(req) })
	c.pruneAfter(reg)
	c.queue.Drain()
	c.gatewaysChanged(old, reg)
	c.retractLeft(old)
	c.logger.Debug("registry replaced", reg.attributes()...)
	return reg
}

// lock locks the Controller. It returns the first registration that is wanted, with its services, or nil.
func (c *Controller) lock(wanted func(*registration) bool) (reg *registration, services *registry.ServiceSet) {
	for {
		if reg = c.merged.Load().find(wanted); reg != nil {
			services = c.servicesOf(reg) // without the lock, because it calls the registry
		}
		c.mu.Lock()
		if c.merged.Load().find(wanted) == reg {
			return reg, services
		}
		c.mu.Unlock()
	}
}

// servicesOf returns the services of a registry, or nil if it panics.
func (c *Controller) servicesOf(reg *registration) (services *registry.ServiceSet) {
	c.guarded("Services of a registry", reg.shard, func() { services = reg.snapshot() })
	return services
}

// remove removes the first registration that is wanted.
func (c *Controller) remove(wanted func(*registration) bool) bool {
	reg, before := c.lock(wanted)
	if reg == nil {
		c.mu.Unlock()
		return false
	}
	c.editLocked(func(m *merged) *merged { return m.remove(reg) })
	req := difference(before, nil)
	c.commitLocked(c.updaters.made().Commit, c.leave(reg), req)
	c.goneLocked(reg)
	cancels := reg.retireLocked()
	c.mu.Unlock()
	defer close(reg.gone) // after the retirement, because a stopped registry replays nothing
	c.retire(reg)
	for _, cancel := range cancels {
		cancel()
	}
	c.updating(reg.shard, func() { c.updaters.deliver(req) })
	c.queue.Drain()
	c.gatewaysChanged(reg, nil)
	c.retractLeft(reg)
	c.logger.Debug("registry deleted", reg.attributes()...)
	return true
}

// retireLocked marks a registry as retired. The caller calls the returned functions without the
// lock.
func (r *registration) retireLocked() (cancels []func()) {
	r.retired = true
	r.left = map[registry.WorkloadKey]*registry.WorkloadInstance{}
	for key, n := range r.workloads {
		r.left[key] = n.value
	}
	cancels, r.cancels = r.cancels, nil
	return cancels
}

// commitLocked commits the present list of registries, the removal of shards and a request for a push as one update.
func (c *Controller) commitLocked(commit func(*xdsupdate.Update), gone []xdsupdate.ShardKey, req *xdsupdate.PushRequest) {
	var u xdsupdate.Update
	u.SetMembers(&c.source, c.merged.Load().registrations, req)
	for _, shard := range gone {
		u.RemoveShard(shard)
	}
	commit(&u)
}

// leave closes the writer of a deleted or replaced registry. It returns the shards of the registry, except for
// shards of present registries.
func (c *Controller) leave(left *registration) []xdsupdate.ShardKey {
	shards := left.writer.Shards()
	left.writer.Close()
	if !slices.Contains(shards, left.shard) {
		shards = append(shards, left.shard) // the registry may have written to it without its writer
	}
	return slices.DeleteFunc(shards, c.hasShard)
}

// hasShard reports whether a shard is the own shard of a present registry or belongs to its writer.
func (c *Controller) hasShard(shard xdsupdate.ShardKey) bool {
	return c.merged.Load().find(func(r *registration) bool {
		return r.shard == shard || slices.Contains(r.writer.Shards(), shard)
	}) != nil
}

// difference returns a push request for the differences of two sets of services, or nil without a difference. When a
// registry is added, replaced or deleted, there may be no other request for these services.
func difference(before, after *registry.ServiceSet) *xdsupdate.PushRequest {
	keys := map[xdsupdate.ConfigKey]struct{}{}
	for host := range after.ChangedSince(before) {
		for _, s := range slices.Concat(before.Host(host), after.Host(host)) {
			keys[xdsupdate.ServiceKey(host, s.Attributes.Namespace)] = struct{}{}
		}
	}
	if len(keys) == 0 {
		return nil // because a request without keys means everything
	}
	return &xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: keys, Start: time.Now(),
		Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1},
	}
}
