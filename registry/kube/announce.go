// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// announce publishes the next state and the change.
func (c *Controller) announce() {
	b := &c.engine.batch
	for _, h := range b.hosts {
		b.noteHost(h)
	}
	b.notePushes()
	b.change.Gateways = b.gatewaysChanged
	c.publisher.Publish(c.engine.snapshot(c.publisher.State()), &b.change)
}

// updatedService returns the event of a service that was added, changed or deleted. For the
// updater, a service that is exported to no namespace does not exist, and neither do its endpoints.
func (h *host) updatedService() (event registry.Event, changed bool) {
	was := h.work.before != nil && !h.work.before.object.hidden()
	is := h.view != nil && !h.view.object.hidden()
	switch {
	case is && !was:
		return registry.EventAdd, true
	case was && !is:
		return registry.EventDelete, true
	case is && h.changedService():
		return registry.EventUpdate, true
	default:
		return 0, false
	}
}

// noteHost adds the change of a host. A deleted service implies the removal of its endpoints.
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

// changedService reports whether the service changed, also one that is exported to no namespace: an
// aggregate merges it with the services of other clusters, which it may hide.
func (h *host) changedService() bool {
	was, is := h.work.before, h.view
	if was == nil || is == nil {
		return was != is
	}
	return was.service != is.service || !sameTargets(was.object, is.object)
}

// notePushes adds push requests: for everything if gateways changed, for each changed service, and
// for each headless service with changed endpoints, because DNS answers for it contain the
// endpoints.
func (b *batch) notePushes() {
	c := &b.change
	if b.gatewaysChanged {
		reason := xdsupdate.TriggerReason(ReasonNetworks)
		if b.nodes && !b.otherwise {
			reason = xdsupdate.ReasonService
		}
		c.Pushes = append(c.Pushes, publish.Push{Reason: reason})
	}
	for _, h := range b.hosts {
		if h.changedService() {
			c.Pushes = append(c.Pushes, publish.Push{Reason: xdsupdate.ReasonService, Key: xdsupdate.ServiceKey(h.hostname, h.namespace)})
		}
		if len(h.work.changes) > 0 && h.reported() && h.object.resolution() == registry.Passthrough {
			c.Pushes = append(c.Pushes, publish.Push{Reason: ReasonHeadlessEndpoint, Key: headlessKey(h)})
		}
	}
}

// headlessKey returns the config key for a change of the endpoints of a headless service. If all
// ports are HTTP, the change affects only DNS names, because HTTP has routes of its own.
func headlessKey(h *host) xdsupdate.ConfigKey {
	kind := dnsName()
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

// announcedWorkloads yields the changes of pods for handlers.
func (e *engine) announcedWorkloads(yield func(prev, curr *registry.WorkloadInstance) bool) {
	for _, p := range e.batch.workloads {
		if !yield(e.instanceOf(p.prev), e.instanceOf(p.curr)) {
			return
		}
	}
}
