// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// Multi returns an updater that makes each call on all of the updaters, one
// after the other. Nil ones are left out.
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

func (m multi) parts() []XDSUpdater { return m }

// PassesTo returns the parts: see ServiceHandler.
func (m multi) PassesTo() []XDSUpdater { return m }

// EDSUpdate calls all.
func (m multi) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	for _, u := range m {
		u.EDSUpdate(shard, hostname, namespace, endpoints)
	}
}

// EDSCacheUpdate calls all.
func (m multi) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	for _, u := range m {
		u.EDSCacheUpdate(shard, hostname, namespace, endpoints)
	}
}

// SvcUpdate calls all.
func (m multi) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	for _, u := range m {
		u.SvcUpdate(shard, hostname, namespace, event)
	}
}

// ConfigUpdate calls all.
func (m multi) ConfigUpdate(req *PushRequest) {
	for _, u := range m {
		u.ConfigUpdate(req)
	}
}

// ProxyUpdate calls all.
func (m multi) ProxyUpdate(cluster registry.ClusterID, ip string) {
	for _, u := range m {
		u.ProxyUpdate(cluster, ip)
	}
}

// RemoveShard calls all.
func (m multi) RemoveShard(shard ShardKey) {
	for _, u := range m {
		u.RemoveShard(shard)
	}
}

// UpdateBatch calls publish as a batch of all that are BatchUpdaters.
func (m multi) UpdateBatch(publish func()) {
	for _, u := range m {
		inner := publish
		publish = func() { UpdateBatch(u, inner) }
	}
	publish()
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
	for _, u := range m.deltas {
		u.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// multiShardUpdater is the claims of a shard of many updaters.
type multiShardUpdater struct {
	multi
	claims []ShardUpdater
}

// EDSDeltaUpdate calls all. It is called only if all updaters take deltas.
func (u *multiShardUpdater) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	for _, c := range u.claims {
		c.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// Prune calls all.
func (u *multiShardUpdater) Prune() {
	for _, c := range u.claims {
		c.Prune()
	}
}

// Close calls all.
func (u *multiShardUpdater) Close() {
	for _, c := range u.claims {
		c.Close()
	}
}
