// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// Multi returns an updater that makes each call on all of the updaters, one
// after the other. Nil ones are left out.
//
// It is an EndpointDeltaUpdater if, and only if, all of them are: a registry
// then sends complete lists if one of them needs them. The alternative, to keep
// all endpoints here and to make complete lists of them, would cost the same
// work and the memory besides. In the same way it is a ShardClaimer if all are.
// It is a BatchUpdater for those that are.
func Multi(updaters ...XDSUpdater) XDSUpdater {
	var m deltaMulti
	var claimers []ShardClaimer
	for _, u := range updaters {
		if u == nil {
			continue
		}
		m.multi = append(m.multi, u)
		if d, ok := As[EndpointDeltaUpdater](u); ok {
			m.deltas = append(m.deltas, d)
		}
		if c, ok := As[ShardClaimer](u); ok {
			claimers = append(claimers, c)
		}
	}
	switch n := len(m.multi); {
	case len(m.deltas) < n:
		return m.multi
	case len(claimers) < n || n == 0:
		return m
	default:
		return claimMulti{deltaMulti: m, claimers: claimers}
	}
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

// deltaMulti is a multi whose members all take deltas.
type deltaMulti struct {
	multi
	deltas []EndpointDeltaUpdater
}

// EDSDeltaUpdate calls all.
func (m deltaMulti) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	for _, u := range m.deltas {
		u.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// claimMulti is a deltaMulti whose members can all be claimed.
type claimMulti struct {
	deltaMulti
	claimers []ShardClaimer
}

// Claim claims the shard of all.
func (m claimMulti) Claim(shard ShardKey) ShardUpdater {
	u := &multiShardUpdater{}
	for _, c := range m.claimers {
		claim := c.Claim(shard)
		u.multi, u.deltas, u.claims = append(u.multi, claim), append(u.deltas, claim), append(u.claims, claim)
	}
	return u
}

// multiShardUpdater is the claims of a shard of many updaters.
type multiShardUpdater struct {
	deltaMulti
	claims []ShardUpdater
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
