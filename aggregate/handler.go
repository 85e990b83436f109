// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// AppendServiceHandler implements registry.Controller. Handlers are told what the
// registries tell: of a service that two clusters have, they hear twice.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// SubscribeServices is AppendServiceHandler with a way out: no call of the
// handler begins after cancel has returned. cancel may be called many times, from
// anywhere.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.subscribeServices(handler, func(registry.ClusterID) bool { return true })
}

// AppendServiceHandlerForCluster is AppendServiceHandler for the registries of
// one cluster, those that are added later included.
func (c *Controller) AppendServiceHandlerForCluster(cluster registry.ClusterID, handler registry.ServiceHandler) {
	cancel := c.subscribeServices(handler, func(of registry.ClusterID) bool { return of == cluster })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[cluster] = append(c.clusters[cluster], cancel)
}

// UnRegisterHandlersForCluster ends what AppendServiceHandlerForCluster began: no
// call of those handlers begins after it has returned.
func (c *Controller) UnRegisterHandlersForCluster(cluster registry.ClusterID) {
	c.mu.Lock()
	cancels := c.clusters[cluster]
	delete(c.clusters, cluster)
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}

// AppendWorkloadHandler implements registry.Controller. Until the first one is
// registered, the registries' workloads are not listened to.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// SubscribeWorkloads is AppendWorkloadHandler with a way out, as in
// SubscribeServices.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	c.mu.Lock()
	c.workloads = true
	c.mu.Unlock()
	for _, reg := range c.merged.Load().registrations {
		c.attachWorkloads(reg)
	}
	return c.subscribe(func() notify.Subscription[event] {
		return notify.Subscription[event]{
			Wants:  func(e event) bool { return e.workload != nil },
			Handle: func(e event) { handler(e.workload.curr, e.workload.event) },
			Replay: slices.Values(c.workloadAddsLocked()),
		}
	})
}

// AppendNetworkGatewayHandler implements registry.ServiceDiscovery.
func (c *Controller) AppendNetworkGatewayHandler(handler func()) { c.SubscribeNetworkGateways(handler) }

// SubscribeNetworkGateways is AppendNetworkGatewayHandler with a way out, as in
// SubscribeServices.
func (c *Controller) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return c.subscribe(func() notify.Subscription[event] {
		return notify.Subscription[event]{
			Wants:  func(e event) bool { return e.gateways },
			Handle: func(event) { handler() },
		}
	})
}

func (c *Controller) subscribeServices(handler registry.ServiceHandler, wants func(registry.ClusterID) bool) (cancel func()) {
	return c.subscribe(func() notify.Subscription[event] {
		return notify.Subscription[event]{
			Wants:  func(e event) bool { return e.service != nil && wants(e.cluster) },
			Handle: func(e event) { handler(e.service.prev, e.service.curr, e.service.event) },
			Replay: slices.Values(c.serviceAddsLocked(wants)),
		}
	})
}

// subscribe registers what subscription returns, which is called with the lock
// held so that its replay is what has been told.
func (c *Controller) subscribe(subscription func() notify.Subscription[event]) (cancel func()) {
	c.mu.Lock()
	cancel = c.queue.Subscribe(subscription())
	c.mu.Unlock()
	c.queue.Drain()
	return cancel
}

func (c *Controller) serviceAddsLocked(wants func(registry.ClusterID) bool) []event {
	var adds []event
	for _, reg := range c.told {
		if !wants(reg.cluster) {
			continue
		}
		for _, s := range slices.SortedFunc(both(reg.services, reg.inherited), registry.CompareServices) {
			adds = append(adds, event{cluster: reg.cluster, service: &serviceEvent{nil, s, registry.EventAdd}})
		}
	}
	return adds
}

func (c *Controller) workloadAddsLocked() []event {
	var adds []event
	for _, reg := range c.told {
		for _, w := range slices.SortedFunc(both(reg.workloads, reg.inheritedWorkloads), registry.CompareWorkloads) {
			adds = append(adds, event{cluster: reg.cluster, workload: &workloadEvent{w, registry.EventAdd}})
		}
	}
	return adds
}

// both yields the values of two maps.
func both[K comparable, V any](a, b map[K]V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, m := range []map[K]V{a, b} {
			for v := range maps.Values(m) {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// subscribeServices, subscribeWorkloads and subscribeGateways use the registry's
// way out if it offers one. Otherwise a handler stays registered for the
// registry's lifetime, and what it hears is dropped.

// teller returns what sends a registry's events.
func teller(r registry.Instance) registry.Controller {
	if simple, ok := unclaimed(r).(registry.Simple); ok {
		return simple.Controller
	}
	return unclaimed(r)
}

func subscribeServices(r registry.Instance, handler registry.ServiceHandler) (cancel func()) {
	if s, ok := teller(r).(interface {
		SubscribeServices(handler registry.ServiceHandler) (cancel func())
	}); ok {
		return s.SubscribeServices(handler)
	}
	r.AppendServiceHandler(handler)
	return func() {}
}

func subscribeWorkloads(r registry.Instance, handler registry.WorkloadHandler) (cancel func()) {
	if s, ok := teller(r).(interface {
		SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func())
	}); ok {
		return s.SubscribeWorkloads(handler)
	}
	r.AppendWorkloadHandler(handler)
	return func() {}
}

func subscribeGateways(r registry.Instance, handler func()) (cancel func()) {
	var discovery registry.ServiceDiscovery = unclaimed(r)
	if simple, ok := discovery.(registry.Simple); ok {
		discovery = simple.ServiceDiscovery
	}
	if s, ok := discovery.(interface {
		SubscribeNetworkGateways(handler func()) (cancel func())
	}); ok {
		return s.SubscribeNetworkGateways(handler)
	}
	r.AppendNetworkGatewayHandler(handler)
	return func() {}
}
