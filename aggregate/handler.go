// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// AppendServiceHandler implements registry.Controller. Handlers receive the events of each
// registry: for a service in two clusters there are two events.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// SubscribeServices implements registry.Subscriber.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.subscribeServices(handler, func(registry.ClusterID) bool { return true })
}

// AppendServiceHandlerForCluster is AppendServiceHandler for the registries of one cluster,
// including registries that are added later.
func (c *Controller) AppendServiceHandlerForCluster(cluster registry.ClusterID, handler registry.ServiceHandler) {
	cancel := c.subscribeServices(handler, func(of registry.ClusterID) bool { return of == cluster })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[cluster] = append(c.clusters[cluster], cancel)
}

// UnRegisterHandlersForCluster cancels the handlers of AppendServiceHandlerForCluster. No call of
// these handlers begins after it has returned.
func (c *Controller) UnRegisterHandlersForCluster(cluster registry.ClusterID) {
	c.mu.Lock()
	cancels := c.clusters[cluster]
	delete(c.clusters, cluster)
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}

// AppendWorkloadHandler implements registry.Controller.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// SubscribeWorkloads implements registry.Subscriber.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
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

// SubscribeNetworkGateways implements registry.GatewaySubscriber.
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

// subscribe registers the subscription that its argument returns. The argument is called with the
// lock held, so that the replay is the state known to handlers at this place in the queue.
func (c *Controller) subscribe(subscription func() notify.Subscription[event]) (cancel func()) {
	c.mu.Lock()
	cancel = c.queue.Subscribe(subscription())
	c.mu.Unlock()
	c.queue.Drain()
	return cancel
}
