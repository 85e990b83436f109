// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// right is what a call about a shard is made by: a lease. It can end at any time, so
// that whoever writes asks with the lock held under which it puts writes in an order.
type right interface{ holds() bool }

// bothRights holds as long as both do.
type bothRights struct{ one, two right }

func (r bothRights) holds() bool { return r.one.holds() && r.two.holds() }

// callKind is a method of XDSUpdater or EndpointDeltaUpdater that is about a shard, or
// prune.
type callKind uint8

const (
	callEDSUpdate callKind = iota
	callEDSDeltaUpdate
	callEDSCacheUpdate
	callSvcUpdate
	callRemoveShard
	// callPrune empties a service that a predecessor has written to.
	callPrune
)

// shardCall is a call of an owner about a shard.
type shardCall struct {
	kind callKind
	// right is what the call may be made by: the lease of the owner, and more if its
	// caller is an owner itself.
	right right

	shard   ShardKey
	name    serviceName          // none for callRemoveShard
	list    []*registry.Endpoint // of callEDSUpdate and callEDSCacheUpdate
	changes []EndpointChange     // of callEDSDeltaUpdate
	event   registry.Event       // of callSvcUpdate
}

// shardTarget makes calls about shards. It asks for the right itself, at the moment
// from which on the call precedes those that come later.
type shardTarget interface{ callShard(c shardCall) }

// targetOf returns the target for an updater: itself if it is one, also one that it
// wraps (As), and otherwise one that makes the calls for a shard one after the other.
func targetOf(updater XDSUpdater) shardTarget {
	if t, ok := As[shardTarget](updater); ok {
		return t
	}
	deltas, _ := As[EndpointDeltaUpdater](updater)
	return &serialTarget{updater: updater, deltas: deltas, shards: map[ShardKey]*serial{}}
}

// serialTarget is the target for an updater that knows of no rights. A call that was begun
// by right ends before any is made that comes later, also one of another owner.
type serialTarget struct {
	updater XDSUpdater
	deltas  EndpointDeltaUpdater // nil if it takes none; then it gets none

	mu     sync.Mutex
	shards map[ShardKey]*serial
}

func (t *serialTarget) callShard(c shardCall) {
	t.serial(c.shard).do(c.right, func() { t.call(c) })
}

func (t *serialTarget) serial(shard ShardKey) *serial {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shards[shard]
	if s == nil {
		s = &serial{}
		t.shards[shard] = s
	}
	return s
}

func (t *serialTarget) call(c shardCall) {
	switch hostname, namespace := c.name.hostname, c.name.namespace; c.kind {
	case callEDSUpdate:
		t.updater.EDSUpdate(c.shard, hostname, namespace, c.list)
	case callEDSDeltaUpdate:
		t.deltas.EDSDeltaUpdate(c.shard, hostname, namespace, c.changes)
	case callEDSCacheUpdate:
		t.updater.EDSCacheUpdate(c.shard, hostname, namespace, c.list)
	case callSvcUpdate:
		t.updater.SvcUpdate(c.shard, hostname, namespace, c.event)
	case callRemoveShard:
		t.updater.RemoveShard(c.shard)
	case callPrune:
		t.updater.EDSUpdate(c.shard, hostname, namespace, nil)
	}
}
