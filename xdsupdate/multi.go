// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// Multi returns an updater that makes each call on all of the updaters, one
// after the other. Nil ones are left out: one that is left is returned as it is, and
// if there is none, Discard. If one of them panics the others are called
// all the same; then the call panics as the first of them did.
//
// It is an EndpointDeltaUpdater if, and only if, all of them are: a registry
// then sends complete lists if one of them needs them. The alternative, to keep
// all endpoints here and to make complete lists of them, would cost the same
// work and the memory besides. It is a BatchUpdater for those that are.
func Multi(updaters ...XDSUpdater) XDSUpdater {
	updaters = slices.DeleteFunc(slices.Clone(updaters), func(u XDSUpdater) bool { return u == nil })
	switch len(updaters) {
	case 0:
		return Discard{}
	case 1:
		return updaters[0]
	}
	m := multi{updaters: updaters}
	var deltas []EndpointDeltaUpdater
	for _, u := range updaters {
		m.targets = append(m.targets, targetOf(u))
		if d, ok := As[EndpointDeltaUpdater](u); ok {
			deltas = append(deltas, d)
		}
	}
	if len(deltas) < len(updaters) {
		return m
	}
	return deltaMulti{m, deltas}
}

// multi is many updaters.
type multi struct {
	updaters []XDSUpdater
	targets  []shardTarget // of calls of owners
}

// callShard makes a call of an owner on all.
func (m multi) callShard(c shardCall) {
	each(m.targets, func(t shardTarget) { t.callShard(c) })
}

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

// EDSUpdate calls all.
func (m multi) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	each(m.updaters, func(u XDSUpdater) { u.EDSUpdate(shard, hostname, namespace, endpoints) })
}

// EDSCacheUpdate calls all.
func (m multi) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	each(m.updaters, func(u XDSUpdater) { u.EDSCacheUpdate(shard, hostname, namespace, endpoints) })
}

// SvcUpdate calls all.
func (m multi) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	each(m.updaters, func(u XDSUpdater) { u.SvcUpdate(shard, hostname, namespace, event) })
}

// ConfigUpdate calls all.
func (m multi) ConfigUpdate(req *PushRequest) {
	each(m.updaters, func(u XDSUpdater) { u.ConfigUpdate(req) })
}

// ProxyUpdate calls all.
func (m multi) ProxyUpdate(cluster registry.ClusterID, ip string) {
	each(m.updaters, func(u XDSUpdater) { u.ProxyUpdate(cluster, ip) })
}

// RemoveShard calls all.
func (m multi) RemoveShard(shard ShardKey) {
	each(m.updaters, func(u XDSUpdater) { u.RemoveShard(shard) })
}

// UpdateBatch calls publish as a batch of all that are BatchUpdaters: once, also if one
// of them panics before it has.
func (m multi) UpdateBatch(publish func()) {
	var first *guard.PanicError
	var within func(rest []XDSUpdater)
	within = func(rest []XDSUpdater) {
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
	within(m.updaters)
	first.Again()
}

// deltaMulti is a multi whose updaters all take deltas.
type deltaMulti struct {
	multi
	deltas []EndpointDeltaUpdater
}

// EDSDeltaUpdate calls all.
func (m deltaMulti) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	each(m.deltas, func(u EndpointDeltaUpdater) { u.EDSDeltaUpdate(shard, hostname, namespace, changes) })
}
