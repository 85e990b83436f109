// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// announce publishes the next state and calls the updater for what changed. State
// and calls are one batch of the updater, so that no push reads the one without
// the other; ProxyUpdate, in which a host program may do anything, follows it.
func (c *Controller) announce() {
	c.panicked("updater", c.report.Within(c.updateBatch))
	for _, ip := range c.engine.batch.proxies {
		c.call(func() { c.updater().ProxyUpdate(c.options.ClusterID, ip) })
	}
	c.notifyHandlers()
}

// publishAndReport is the batch of the updater.
func (c *Controller) publishAndReport() {
	b := &c.engine.batch
	c.state.Store(c.engine.snapshot(c.state.Load()))
	for _, h := range b.hosts {
		c.updateService(h)
	}
	for _, h := range b.hosts {
		c.updateEndpoints(h)
	}
	c.updateConfigs()
}

// updateService reports a service that is new, defined in another way, or gone.
// One that is exported to nobody is gone for the updater, with its endpoints.
func (c *Controller) updateService(h *host) {
	was := h.work.before != nil && !h.work.before.object.hidden()
	is := h.view != nil && !h.view.object.hidden()
	switch {
	case is && !was:
		c.call(func() { c.updater().SvcUpdate(c.shard, h.hostname, h.namespace, registry.EventAdd) })
	case was && !is:
		c.call(func() { c.updater().SvcUpdate(c.shard, h.hostname, h.namespace, registry.EventDelete) })
	case is && (h.work.before.service != h.view.service || !sameTargets(h.work.before.object, h.view.object)):
		c.call(func() { c.updater().SvcUpdate(c.shard, h.hostname, h.namespace, registry.EventUpdate) })
	}
}

// updateEndpoints reports the endpoints of a host if they changed. Those of one
// that is gone went with it.
func (c *Controller) updateEndpoints(h *host) {
	if len(h.work.changes) == 0 || !h.reported() {
		return
	}
	c.call(func() {
		deltas := c.target.Load().deltas
		if deltas == nil || h.view.endpoints.Len() <= len(h.work.changes) {
			c.updater().EDSUpdate(c.shard, h.hostname, h.namespace, h.view.endpoints.Slice())
		} else {
			deltas.EDSDeltaUpdate(c.shard, h.hostname, h.namespace, h.work.changes)
		}
	})
}

// updateConfigs asks for pushes: of everything if gateways changed, of services
// that changed, and of headless services whose endpoints did, as these are part of
// what clients resolve.
func (c *Controller) updateConfigs() {
	b := &c.engine.batch
	if b.gatewaysChanged {
		reason := xdsupdate.TriggerReason(ReasonNetworks)
		if b.nodes && !b.otherwise {
			reason = xdsupdate.ReasonService
		}
		c.request(&xdsupdate.PushRequest{
			Full: true, Forced: true, Start: time.Now(), Reason: map[xdsupdate.TriggerReason]int{reason: 1},
		})
	}
	var services, endpoints []xdsupdate.ConfigKey
	for _, s := range b.services {
		services = append(services, xdsupdate.ServiceKey(s.curr.Hostname, s.curr.Attributes.Namespace))
	}
	for _, h := range b.hosts {
		if len(h.work.changes) > 0 && h.reported() && h.object.resolution() == registry.Passthrough {
			endpoints = append(endpoints, headlessKey(h))
		}
	}
	c.push(services, xdsupdate.ReasonService)
	c.push(endpoints, ReasonHeadlessEndpoint)
}

func (c *Controller) push(changed []xdsupdate.ConfigKey, reason xdsupdate.TriggerReason) {
	if len(changed) == 0 {
		return
	}
	keys := make(map[xdsupdate.ConfigKey]struct{}, len(changed))
	for _, k := range changed {
		keys[k] = struct{}{}
	}
	c.request(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: keys, Start: time.Now(), Reason: map[xdsupdate.TriggerReason]int{reason: 1},
	})
}

// headlessKey names what a change of the endpoints of a headless service changes:
// only DNS names if all ports are HTTP, which has routes of its own.
func headlessKey(h *host) xdsupdate.ConfigKey {
	kind := DNSName
	for _, p := range h.object.ports {
		if !p.protocol.IsHTTP() {
			kind = istio.ServiceEntry
		}
	}
	return xdsupdate.ConfigKey{Kind: kind, Name: string(h.hostname), Namespace: h.namespace}
}
