// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// announce publishes the next state together with its changes.
func (b *batch) announce() {
	b.prev = b.publisher.State()
	if !b.options.WorkloadEntriesOnly {
		b.noteHosts()
	}
	b.publisher.Publish(b.newState(b.prev), &b.change)
}

// updatedProxies returns the proxies that need a ProxyUpdate, when the state is visible.
func (b *batch) updatedProxies() (out []publish.Proxy) {
	b.compareProxies(b.prev, b.publisher.State())
	for _, p := range slices.SortedFunc(maps.Keys(b.proxies), proxyAddress.compare) {
		out = append(out, publish.Proxy{Cluster: p.cluster, IP: p.ip.String()})
	}
	return out
}

// noteHosts records the changes of hosts: new, redefined and deleted definitions, changed endpoints
// of existing hosts, and push requests. A host whose endpoints are part of a cluster, because a
// proxy resolves them, also needs a push. As in Istio 1.30, a host that loses one of several
// entries is not reported, because its other entries are unchanged.
func (b *batch) noteHosts() {
	c := &b.change
	for _, h := range b.hosts {
		switch w := h.work; {
		case len(h.bindings) == 0:
			c.Services = append(c.Services, publish.ServiceUpdate{Hostname: h.hostname, Namespace: h.namespace, Event: registry.EventDelete})
		case w.event != 0:
			c.Services = append(c.Services, publish.ServiceUpdate{Hostname: h.hostname, Namespace: h.namespace, Event: w.event})
		}
		if h.work.push {
			c.Pushes = append(c.Pushes, publish.Push{Reason: xdsupdate.ReasonService, Key: h.key()})
		}
	}
	for _, h := range b.hosts {
		w := h.work
		if len(w.changes) == 0 {
			continue
		}
		if len(h.bindings) > 0 {
			c.Endpoints = append(c.Endpoints, h.endpointUpdate(w.view, w.changes))
		}
		if !w.push && (w.was || h.dns) {
			c.Pushes = append(c.Pushes, publish.Push{Reason: xdsupdate.ReasonEndpoint, Key: h.key()})
		}
	}
	if b.pending.resync {
		b.noteAllEndpoints()
	}
}

// noteAllEndpoints has the updater get the complete lists of all hosts.
func (b *batch) noteAllEndpoints() {
	var hosts []*host
	b.tables.hosts.Entries(func(e *pmap.Entry[hostKey, *host]) bool {
		hosts = append(hosts, e.Value)
		return true
	})
	slices.SortFunc(hosts, func(h, i *host) int { return h.compare(i.hostKey) })
	for _, h := range hosts {
		b.change.Endpoints = append(b.change.Endpoints, h.endpointUpdate(h.view.Load(), nil))
	}
}

func (h *host) endpointUpdate(v *hostView, changes []xdsupdate.EndpointChange) publish.EndpointUpdate {
	return publish.EndpointUpdate{Hostname: h.hostname, Namespace: h.namespace, Endpoints: v.endpoints, Changes: changes}
}

// key names the host in requests for pushes.
func (k hostKey) key() xdsupdate.ConfigKey { return xdsupdate.ServiceKey(k.hostname, k.namespace) }

// announcedWorkloads yields the changes of workloads as handlers see them.
// WorkloadEntries without an IP address do not exist for them, as in Istio 1.30; but a
// workload that they know and that gets a host name instead is announced as deleted,
// which Istio leaves out.
func (b *batch) announcedWorkloads(yield func(prev, curr *registry.WorkloadInstance) bool) {
	for _, w := range b.workloads {
		if !yield(w.prev.announced(), w.curr.announced()) {
			return
		}
	}
}
