// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// Multi returns an updater that makes each call on all of the updaters, one
// after the other. Nil ones are left out. If one of them panics the others are called
// all the same; then the call panics as the first of them did.
//
// It is an EndpointDeltaUpdater if, and only if, all of them are: a registry
// then sends complete lists if one of them needs them. The alternative, to keep
// all endpoints here and to make complete lists of them, would cost the same
// work and the memory besides. It is a BatchUpdater for those that are.
//
// It is a ShardClaimer, also of updaters that are none: calls of those by a claim
// are dropped after another claim, except for one that is in progress, and Prune
// empties the services of which the predecessors have written endpoints, by calls
// of EDSUpdate. Who claims shards may wrap a single updater for this.
func Multi(updaters ...XDSUpdater) XDSUpdater {
	var m deltaMulti
	for _, u := range updaters {
		if u == nil {
			continue
		}
		m.multi = append(m.multi, u)
		if d, ok := As[EndpointDeltaUpdater](u); ok {
			m.deltas = append(m.deltas, d)
		}
		c, ok := As[ShardClaimer](u)
		if !ok {
			c = &fenced{XDSUpdater: u}
		}
		m.claimers = append(m.claimers, c)
	}
	if len(m.deltas) < len(m.multi) {
		return m.claimMulti
	}
	return m
}

type multi []XDSUpdater

// each calls f for all, and panics in the end if a call did.
func each[U any](list []U, f func(U)) {
	var first *guard.PanicError
	for _, u := range list {
		if p := guard.Call(func() { f(u) }); first == nil {
			first = p
		}
	}
	first.Again()
}

func (m multi) parts() []XDSUpdater { return m }

// PassesTo returns the parts: see ServiceHandler.
func (m multi) PassesTo() []XDSUpdater { return m }

// EDSUpdate calls all.
func (m multi) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	each(m, func(u XDSUpdater) { u.EDSUpdate(shard, hostname, namespace, endpoints) })
}

// EDSCacheUpdate calls all.
func (m multi) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	each(m, func(u XDSUpdater) { u.EDSCacheUpdate(shard, hostname, namespace, endpoints) })
}

// SvcUpdate calls all.
func (m multi) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	each(m, func(u XDSUpdater) { u.SvcUpdate(shard, hostname, namespace, event) })
}

// ConfigUpdate calls all.
func (m multi) ConfigUpdate(req *PushRequest) {
	each(m, func(u XDSUpdater) { u.ConfigUpdate(req) })
}

// ProxyUpdate calls all.
func (m multi) ProxyUpdate(cluster registry.ClusterID, ip string) {
	each(m, func(u XDSUpdater) { u.ProxyUpdate(cluster, ip) })
}

// RemoveShard calls all.
func (m multi) RemoveShard(shard ShardKey) {
	each(m, func(u XDSUpdater) { u.RemoveShard(shard) })
}

// UpdateBatch calls publish as a batch of all that are BatchUpdaters: once, also if one
// of them panics before it has.
func (m multi) UpdateBatch(publish func()) {
	var first *guard.PanicError
	var within func(rest multi)
	within = func(rest multi) {
		if len(rest) == 0 {
			publish()
			return
		}
		begun := false
		p := guard.Call(func() {
			UpdateBatch(rest[0], func() {
				begun = true
				within(rest[1:])
			})
		})
		if first == nil {
			first = p
		}
		if !begun {
			within(rest[1:])
		}
	}
	within(m)
	first.Again()
}

// claimMulti is a multi whose shards can be claimed.
type claimMulti struct {
	multi
	claimers []ShardClaimer
}

// Claim claims the shard of all.
func (m claimMulti) Claim(shard ShardKey) ShardUpdater {
	u := &multiShardUpdater{}
	for _, c := range m.claimers {
		claim := c.Claim(shard)
		u.multi, u.claims = append(u.multi, claim), append(u.claims, claim)
	}
	return u
}

// deltaMulti is a claimMulti whose members all take deltas.
type deltaMulti struct {
	claimMulti
	deltas []EndpointDeltaUpdater
}

// EDSDeltaUpdate calls all.
func (m deltaMulti) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	each(m.deltas, func(u EndpointDeltaUpdater) { u.EDSDeltaUpdate(shard, hostname, namespace, changes) })
}

// multiShardUpdater is the claims of a shard of many updaters.
type multiShardUpdater struct {
	multi
	claims []ShardUpdater
}

// EDSDeltaUpdate calls all. It is called only if all updaters take deltas.
func (u *multiShardUpdater) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	each(u.claims, func(c ShardUpdater) { c.EDSDeltaUpdate(shard, hostname, namespace, changes) })
}

// Prune calls all.
func (u *multiShardUpdater) Prune() {
	each(u.claims, func(c ShardUpdater) { c.Prune() })
}

// Close calls all.
func (u *multiShardUpdater) Close() {
	each(u.claims, func(c ShardUpdater) { c.Close() })
}
