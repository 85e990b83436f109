// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// AppendServiceHandler implements registry.Controller.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// AppendWorkloadHandler implements registry.Controller. Handlers are notified of the pods that are
// ready, have not ended, and are not being deleted. They never see the workloads of other
// registries.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// AppendNetworkGatewayHandler implements registry.ServiceDiscovery.
func (c *Controller) AppendNetworkGatewayHandler(handler func()) { c.SubscribeNetworkGateways(handler) }

// SubscribeServices is like AppendServiceHandler, but returns a cancel function. After cancel has
// returned, the handler gets no further change; a call in progress may still run. cancel may be
// called many times, from any goroutine.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.publisher.SubscribeServices(handler)
}

// SubscribeWorkloads is like AppendWorkloadHandler, but returns a cancel function, as
// SubscribeServices does.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return c.publisher.SubscribeWorkloads(handler)
}

// SubscribeNetworkGateways is like AppendNetworkGatewayHandler, but returns a cancel function, as
// SubscribeServices does.
func (c *Controller) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return c.publisher.SubscribeNetworkGateways(handler)
}

// ownWorkloads returns the pods of a state that handlers see, in the order of
// registry.CompareWorkloads.
func (c *Controller) ownWorkloads(s *state) []*registry.WorkloadInstance {
	var out []*registry.WorkloadInstance
	s.pods.Entries(func(p *podEntry) bool {
		if w := c.engine.instanceOf(p); w != nil {
			out = append(out, w)
		}
		return true
	})
	slices.SortFunc(out, registry.CompareWorkloads)
	return out
}
