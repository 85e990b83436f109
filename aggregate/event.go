// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// event is an event of one registry. Exactly one of service, workload and gateways is set.
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

// subscribeTo subscribes to a registry.
func (c *Controller) subscribeTo(reg *registration) {
	c.keep(reg, reg.events.SubscribeServices(func(prev, curr *registry.Service, e registry.Event) {
		c.onService(reg, prev, curr, e)
	}))
	c.keep(reg, reg.events.SubscribeNetworkGateways(func() { c.onGateways(reg) }))
	c.keep(reg, reg.events.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) { c.onWorkload(reg, w, e) }))
}

// keep stores the cancel function of a subscription, or calls it if the registry is retired.
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

func (c *Controller) onService(reg *registration, prev, curr *registry.Service, e registry.Event) {
	c.mu.Lock()
	if !reg.retired {
		key := keyOfService(curr)
		if prev != nil {
			reg.services.rename(keyOfService(prev), key)
		}
		if before, e, ok := reg.services.take(key, notified[*registry.Service]{curr, reg}, e); ok {
			c.queue.Push(event{cluster: reg.shard.Cluster, service: &serviceEvent{before, curr, e}})
		}
	}
	c.mu.Unlock()
	c.queue.Drain()
}

func (c *Controller) onWorkload(reg *registration, w *registry.WorkloadInstance, e registry.Event) {
	c.mu.Lock()
	if reg.retired {
		reg.left[w.Key()] = w
	} else {
		c.contestLocked(reg, w, e)
		if _, e, ok := reg.workloads.take(w.Key(), notified[*registry.WorkloadInstance]{w, reg}, e); ok {
			c.queue.Push(event{cluster: reg.shard.Cluster, workload: &workloadEvent{w, e}})
		}
	}
	c.mu.Unlock()
	c.retractions.Drain()
	c.queue.Drain()
}

func (c *Controller) onGateways(reg *registration) {
	c.mu.Lock()
	if !reg.retired {
		c.queue.Push(event{cluster: reg.shard.Cluster, gateways: true})
	}
	c.mu.Unlock()
	c.queue.Drain()
}

// serviceAddsLocked returns the replay of a new service handler.
func (c *Controller) serviceAddsLocked(wants func(registry.ClusterID) bool) []event {
	var adds []event
	for _, reg := range c.merged.Load().registrations {
		if wants(reg.shard.Cluster) {
			for _, s := range reg.services.sorted(registry.CompareServices) {
				adds = append(adds, event{cluster: reg.shard.Cluster, service: &serviceEvent{nil, s, registry.EventAdd}})
			}
		}
	}
	return adds
}

// workloadAddsLocked returns the replay of a new workload handler.
func (c *Controller) workloadAddsLocked() []event {
	var adds []event
	for _, reg := range c.merged.Load().registrations {
		adds = append(adds, reg.workloadEvents(registry.EventAdd, reg.workloads.sorted(registry.CompareWorkloads))...)
	}
	return adds
}

// goneLocked pushes a Delete of everything that handlers know about a registry without a successor.
func (c *Controller) goneLocked(reg *registration) {
	c.queue.Push(reg.serviceDeletes(reg.services.sorted(registry.CompareServices))...)
	c.queue.Push(reg.workloadEvents(registry.EventDelete, reg.workloads.sorted(registry.CompareWorkloads))...)
}

// dropInherited pushes a Delete of each service and workload that handlers know only from the
// predecessors of a registry. It keeps services that the registry has but has not announced yet,
// because they become Updates when it does. Workloads cannot be listed: if the registry announces
// one after this call, handlers receive an Add.
func (c *Controller) dropInherited(reg *registration) {
	has := map[serviceKey]struct{}{}
	for _, s := range reg.instance.Services() {
		has[keyOfService(s)] = struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reg.retired {
		return
	}
	c.queue.Push(reg.serviceDeletes(reg.services.drop(func(key serviceKey, n *notified[*registry.Service]) bool {
		_, stays := has[key]
		return n.by != reg && !stays
	}, registry.CompareServices))...)
	c.queue.Push(reg.workloadEvents(registry.EventDelete, reg.workloads.drop(
		func(_ registry.WorkloadKey, n *notified[*registry.WorkloadInstance]) bool { return n.by != reg },
		registry.CompareWorkloads))...)
}

// serviceDeletes returns a Delete of each service of a retiring registry.
func (r *registration) serviceDeletes(services []*registry.Service) []event {
	events := make([]event, len(services))
	for i, s := range services {
		events[i] = event{cluster: r.shard.Cluster, service: &serviceEvent{nil, s, registry.EventDelete}}
	}
	return events
}

func (r *registration) workloadEvents(e registry.Event, workloads []*registry.WorkloadInstance) []event {
	events := make([]event, len(workloads))
	for i, w := range workloads {
		events[i] = event{cluster: r.shard.Cluster, workload: &workloadEvent{w, e}}
	}
	return events
}

// gatewaysChanged notifies the gateway handlers if the gateways of the registries left and came
// differ. Either registry may be nil.
func (c *Controller) gatewaysChanged(left, came *registration) {
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
