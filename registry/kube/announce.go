// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// announce publishes the next state, and says what changed.
func (c *Controller) announce() {
	b := &c.engine.batch
	for _, h := range b.hosts {
		b.noteHost(h)
	}
	b.notePushes()
	b.change.Gateways = b.gatewaysChanged
	c.publisher.Publish(c.engine.snapshot(c.publisher.State()), &b.change)
}

// updatedService returns the change of a service that is new, defined in another way,
// or gone. One that is exported to nobody is gone for the updater, with its endpoints.
func (h *host) updatedService() (event registry.Event, changed bool) {
	was := h.work.before != nil && !h.work.before.object.hidden()
	is := h.view != nil && !h.view.object.hidden()
	switch {
	case is && !was:
		return registry.EventAdd, true
	case was && !is:
		return registry.EventDelete, true
	case is && (h.work.before.service != h.view.service || !sameTargets(h.work.before.object, h.view.object)):
		return registry.EventUpdate, true
	default:
		return 0, false
	}
}

// noteHost says what changed of a host. The endpoints of one that is gone went with it.
func (b *batch) noteHost(h *host) {
	c := &b.change
	if event, changed := h.updatedService(); changed {
		c.Services = append(c.Services, publish.ServiceUpdate{Hostname: h.hostname, Namespace: h.namespace, Event: event})
	}
	if len(h.work.changes) > 0 && h.reported() {
		c.Endpoints = append(c.Endpoints, publish.EndpointUpdate{
			Hostname: h.hostname, Namespace: h.namespace, Endpoints: h.view.endpoints, Changes: h.work.changes,
		})
	}
}

// notePushes asks for pushes: of everything if gateways changed, of services that
// changed, and of headless services whose endpoints did, as these are part of what
// clients resolve.
func (b *batch) notePushes() {
	c := &b.change
	if b.gatewaysChanged {
		reason := xdsupdate.TriggerReason(ReasonNetworks)
		if b.nodes && !b.otherwise {
			reason = xdsupdate.ReasonService
		}
		c.Pushes = append(c.Pushes, publish.Push{Reason: reason})
	}
	for _, s := range c.ServiceChanges {
		key := xdsupdate.ServiceKey(s.Curr.Hostname, s.Curr.Attributes.Namespace)
		c.Pushes = append(c.Pushes, publish.Push{Reason: xdsupdate.ReasonService, Key: key})
	}
	for _, h := range b.hosts {
		if len(h.work.changes) > 0 && h.reported() && h.object.resolution() == registry.Passthrough {
			c.Pushes = append(c.Pushes, publish.Push{Reason: ReasonHeadlessEndpoint, Key: headlessKey(h)})
		}
	}
}

// headlessKey names what a change of the endpoints of a headless service changes:
// only DNS names if all ports are HTTP, which has routes of its own.
func headlessKey(h *host) xdsupdate.ConfigKey {
	kind := DNSName()
	for _, p := range h.object.ports {
		if !p.protocol.IsHTTP() {
			kind = istio.ServiceEntry
		}
	}
	return xdsupdate.ConfigKey{Kind: kind, Name: string(h.hostname), Namespace: h.namespace}
}

// updatedProxies returns the proxies that need a ProxyUpdate.
func (e *engine) updatedProxies() []publish.Proxy {
	out := make([]publish.Proxy, 0, len(e.batch.proxies))
	for _, ip := range e.batch.proxies {
		out = append(out, publish.Proxy{Cluster: e.options.ClusterID, IP: ip})
	}
	return out
}

// announcedWorkloads yields the changes of pods as handlers see them.
func (e *engine) announcedWorkloads(yield func(prev, curr *registry.WorkloadInstance) bool) {
	for _, p := range e.batch.workloads {
		if !yield(e.instanceOf(p.prev), e.instanceOf(p.curr)) {
			return
		}
	}
}
