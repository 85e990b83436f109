// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// event is what one registry tells. Exactly one of service, workload and gateways
// is set.
type event struct {
	cluster  registry.ClusterID
	service  *serviceEvent
	workload *workloadEvent
	gateways bool
}

type serviceEvent struct {
	prev, curr *registry.Service
	event      registry.Event
}

type workloadEvent struct {
	curr  *registry.WorkloadInstance
	event registry.Event
}

// serviceKey names a service among those of one registry.
type serviceKey struct {
	hostname              registry.Hostname
	namespace, objectName string
	address               string
}

func keyOfService(s *registry.Service) serviceKey {
	return serviceKey{s.Hostname, s.Attributes.Namespace, s.Attributes.ObjectName, s.DefaultAddress}
}

// attach subscribes to a registry.
func (c *Controller) attach(reg *registration) {
	c.keep(reg, subscribeServices(reg.instance, func(prev, curr *registry.Service, e registry.Event) {
		c.onService(reg, prev, curr, e)
	}))
	c.keep(reg, subscribeGateways(reg.instance, func() { c.onGateways(reg) }))
	c.mu.Lock()
	wanted := c.workloads
	c.mu.Unlock()
	if wanted {
		c.attachWorkloads(reg)
	}
}

// attachWorkloads subscribes to a registry's workloads, once.
func (c *Controller) attachWorkloads(reg *registration) {
	c.mu.Lock()
	again := reg.watchesWorkloads
	reg.watchesWorkloads = true
	c.mu.Unlock()
	if again {
		return
	}
	c.keep(reg, subscribeWorkloads(reg.instance, func(w *registry.WorkloadInstance, e registry.Event) {
		c.onWorkload(reg, w, e)
	}))
}

// keep remembers how to end a subscription, or ends it if its time is over.
func (c *Controller) keep(reg *registration, cancel func()) {
	c.mu.Lock()
	over := reg.retired
	if !over {
		reg.cancels = append(reg.cancels, cancel)
	}
	c.mu.Unlock()
	if over {
		cancel()
	}
}

// succeed lets a registry, or none, take over from another one, or from none, in
// what handlers are told. The predecessor is heard no more. What it has told is
// inherited, or, without a successor, told to be gone.
func (c *Controller) succeed(old, reg *registration) {
	c.mu.Lock()
	var cancels []func()
	if reg != nil {
		c.told = append(c.told, reg)
	}
	if old != nil {
		c.told = slices.DeleteFunc(c.told, func(r *registration) bool { return r == old })
		maps.Copy(old.services, old.inherited)
		maps.Copy(old.workloads, old.inheritedWorkloads)
		if reg != nil {
			reg.inherited, reg.inheritedWorkloads = old.services, old.workloads
		} else {
			c.tellGoneLocked(old)
		}
		old.retired = true
		close(old.gone)
		cancels, old.cancels = old.cancels, nil
	}
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	if old != nil {
		old.close()
	}
}

// close takes from the registry the right to write to its shard, if it is
// Claimed.
func (r *registration) close() {
	if claimed, ok := r.instance.(Claimed); ok && claimed.Updater != nil {
		claimed.Updater.Close()
	}
}

// tellGoneLocked queues a Delete of everything that a registry has told.
func (c *Controller) tellGoneLocked(reg *registration) {
	for _, s := range slices.SortedFunc(maps.Values(reg.services), registry.CompareServices) {
		c.queue.Push(event{cluster: reg.cluster, service: &serviceEvent{nil, s, registry.EventDelete}})
	}
	for _, w := range slices.SortedFunc(maps.Values(reg.workloads), registry.CompareWorkloads) {
		c.queue.Push(event{cluster: reg.cluster, workload: &workloadEvent{w, registry.EventDelete}})
	}
}

// forgo tells that what was inherited, and the new registry does not have, is no
// more. The rest of it becomes Updates when the new registry tells of it.
func (c *Controller) forgo(reg *registration) {
	has := map[serviceKey]bool{}
	for _, s := range reg.instance.Services() {
		has[keyOfService(s)] = true
	}
	c.mu.Lock()
	for _, s := range slices.SortedFunc(maps.Values(reg.inherited), registry.CompareServices) {
		if k := keyOfService(s); !has[k] && !reg.retired {
			delete(reg.inherited, k)
			c.queue.Push(event{cluster: reg.cluster, service: &serviceEvent{nil, s, registry.EventDelete}})
		}
	}
	for _, w := range slices.SortedFunc(maps.Values(reg.inheritedWorkloads), registry.CompareWorkloads) {
		// Workloads cannot be listed. What the new registry has not told by now is
		// gone, or comes again as an Add.
		if !reg.retired {
			delete(reg.inheritedWorkloads, w.Key())
			c.queue.Push(event{cluster: reg.cluster, workload: &workloadEvent{w, registry.EventDelete}})
		}
	}
	c.mu.Unlock()
	c.queue.Drain()
}

func (c *Controller) onService(reg *registration, prev, curr *registry.Service, e registry.Event) {
	c.mu.Lock()
	if reg.retired {
		c.mu.Unlock()
		return
	}
	told := serviceEvent{prev, curr, e}
	news := true
	if prev != nil {
		delete(reg.services, keyOfService(prev))
		delete(reg.inherited, keyOfService(prev))
	}
	k := keyOfService(curr)
	if before := reg.inherited[k]; before != nil {
		delete(reg.inherited, k)
		if e == registry.EventAdd {
			told = serviceEvent{before, curr, registry.EventUpdate}
			news = !before.Equal(curr)
		}
	}
	if e == registry.EventDelete {
		delete(reg.services, k)
	} else {
		reg.services[k] = curr
	}
	if news {
		c.queue.Push(event{cluster: reg.cluster, service: &told})
	}
	c.mu.Unlock()
	c.queue.Drain()
}

func (c *Controller) onWorkload(reg *registration, w *registry.WorkloadInstance, e registry.Event) {
	c.mu.Lock()
	if reg.retired {
		c.mu.Unlock()
		return
	}
	told := workloadEvent{w, e}
	news := true
	if before := reg.inheritedWorkloads[w.Key()]; before != nil {
		delete(reg.inheritedWorkloads, w.Key())
		if e == registry.EventAdd {
			told.event = registry.EventUpdate
			news = !before.Equal(w)
		}
	}
	if e == registry.EventDelete {
		delete(reg.workloads, w.Key())
	} else {
		reg.workloads[w.Key()] = w
	}
	if news {
		c.queue.Push(event{cluster: reg.cluster, workload: &told})
	}
	c.mu.Unlock()
	c.queue.Drain()
}

func (c *Controller) onGateways(reg *registration) {
	c.mu.Lock()
	if !reg.retired {
		c.queue.Push(event{cluster: reg.cluster, gateways: true})
	}
	c.mu.Unlock()
	c.queue.Drain()
}

// tellGateways tells that gateways have changed if those of a registry that left
// are not those of the one that came.
func (c *Controller) tellGateways(left, came *registration) {
	if slices.Equal(left.gateways(), came.gateways()) {
		return
	}
	c.queue.Push(event{gateways: true})
	c.queue.Drain()
}

func (r *registration) gateways() []registry.NetworkGateway {
	if r == nil {
		return nil
	}
	return slices.SortedFunc(slices.Values(r.instance.NetworkGateways()), registry.CompareNetworkGateways)
}
