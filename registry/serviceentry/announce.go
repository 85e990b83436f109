// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// announce publishes the next state and calls the updater for what changed. State
// and calls are one batch of the updater, so that no push reads the one without the
// other; ProxyUpdate, in which a host may do anything, follows it.
func (b *batch) announce() {
	before := b.state.Load()
	b.panicked("updater", b.report.Within(b.updateBatch))
	b.compareProxies(before, b.state.Load())
	b.updateProxies()
	b.notifyHandlers()
}

// publishAndReport is the batch of the updater.
func (b *batch) publishAndReport() {
	b.publish()
	if !b.options.WorkloadEntriesOnly {
		b.updateServices()
		b.updateEndpoints()
		b.updateConfigs()
	}
}

// updateServices reports hosts that are new, defined in another way, or not
// defined any more. As in Istio 1.30 a host that loses one of its entries is not
// mentioned: its other entries are what they were.
func (b *batch) updateServices() {
	for _, h := range b.hosts {
		switch {
		case len(h.bindings) == 0:
			b.call(func() { b.updater.SvcUpdate(b.shard, h.hostname, h.namespace, registry.EventDelete) })
		case h.work.event != 0:
			b.call(func() { b.updater.SvcUpdate(b.shard, h.hostname, h.namespace, h.work.event) })
		}
	}
}

// updateEndpoints reports the endpoints of each host of which they changed. Those
// of a host that is gone went with it.
func (b *batch) updateEndpoints() {
	for _, h := range b.hosts {
		w := h.work
		if len(w.changes) == 0 || len(h.bindings) == 0 {
			continue
		}
		b.call(func() {
			if b.deltas == nil || w.view.endpoints.Len() <= len(w.changes) {
				b.updater.EDSUpdate(b.shard, h.hostname, h.namespace, w.view.endpoints.View())
			} else {
				b.deltas.EDSDeltaUpdate(b.shard, h.hostname, h.namespace, w.changes)
			}
		})
	}
	if b.pending.resync {
		b.resyncEndpoints()
	}
}

func (b *batch) resyncEndpoints() {
	var hosts []*host
	b.tables.hosts.Entries(func(e *pmap.Entry[hostKey, *host]) bool {
		hosts = append(hosts, e.Value)
		return true
	})
	slices.SortFunc(hosts, func(h, i *host) int { return h.compare(i.hostKey) })
	for _, h := range hosts {
		b.call(func() { b.updater.EDSUpdate(b.shard, h.hostname, h.namespace, h.endpoints().View()) })
	}
}

// updateConfigs asks for pushes: one for the hosts whose services changed, and
// one for the others whose endpoints are part of a cluster, because a proxy
// resolves them.
func (b *batch) updateConfigs() {
	var services, endpoints map[xdsupdate.ConfigKey]struct{}
	for _, h := range b.hosts {
		switch w := h.work; {
		case w.push:
			services = addKey(services, h.hostKey)
		case len(w.changes) > 0 && (w.was || h.dns):
			endpoints = addKey(endpoints, h.hostKey)
		}
	}
	b.requestPush(services, xdsupdate.ReasonService)
	b.requestPush(endpoints, xdsupdate.ReasonEndpoint)
}

func (b *batch) requestPush(keys map[xdsupdate.ConfigKey]struct{}, reason xdsupdate.TriggerReason) {
	if len(keys) == 0 {
		return
	}
	b.call(func() {
		b.updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, ConfigsUpdated: keys, Start: time.Now(),
			Reason: map[xdsupdate.TriggerReason]int{reason: 1},
		})
	})
}

func addKey(keys map[xdsupdate.ConfigKey]struct{}, h hostKey) map[xdsupdate.ConfigKey]struct{} {
	if keys == nil {
		keys = map[xdsupdate.ConfigKey]struct{}{}
	}
	keys[xdsupdate.ConfigKey{Kind: istio.ServiceEntry, Name: string(h.hostname), Namespace: h.namespace}] = struct{}{}
	return keys
}

func (b *batch) updateProxies() {
	for _, p := range slices.SortedFunc(maps.Keys(b.proxies), proxyAddress.compare) {
		b.call(func() { b.updater.ProxyUpdate(p.cluster, p.ip.String()) })
	}
}
