// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// callKind is a method of XDSUpdater or EndpointDeltaUpdater that is about a shard, or
// prune.
type callKind uint8

const (
	callEDSUpdate callKind = iota
	callEDSDeltaUpdate
	callEDSCacheUpdate
	callSvcUpdate
	callRemoveShard
	// callPrune empties the services that predecessors of a lease have written to last.
	callPrune
)

// shardCall is a call of an owner about a shard.
type shardCall struct {
	kind    callKind
	right   right
	shard   ShardKey
	name    serviceName          // none for callRemoveShard and callPrune
	list    []*registry.Endpoint // of callEDSUpdate and callEDSCacheUpdate
	changes []EndpointChange     // of callEDSDeltaUpdate
	event   registry.Event       // of callSvcUpdate
	heir    *lease               // of callPrune
}

// shardTarget makes calls about shards. It asks for the right itself, at the moment
// from which on the call precedes those that come later, and makes the first delta of an
// owner for a service that a predecessor has written to the complete list that it is.
type shardTarget interface{ callShard(c shardCall) }

// targetOf returns the target for an updater: itself if it is one, also one that it
// wraps (As), and otherwise one that makes the calls for a shard one after the other.
func targetOf(updater XDSUpdater) shardTarget {
	if t, ok := As[shardTarget](updater); ok {
		return t
	}
	deltas, _ := As[EndpointDeltaUpdater](updater)
	return &serialTarget{updater: updater, deltas: deltas, shards: map[ShardKey]*serialShard{}}
}

// serialTarget is the target for an updater that knows of no rights. A call that was begun
// by right ends before any is made that comes later, also one of another owner.
type serialTarget struct {
	updater XDSUpdater
	deltas  EndpointDeltaUpdater // nil if it takes none; then it gets none

	mu     sync.Mutex
	shards map[ShardKey]*serialShard
}

// serialShard is a shard of a serialTarget.
type serialShard struct {
	serial
	// written are the rights by which services were written to last. It may have
	// some of which nothing is there. It belongs to the call that is being made.
	written map[serviceName]right
}

func (t *serialTarget) callShard(c shardCall) {
	s := t.shard(c.shard)
	s.do(c.right, func() { t.call(s, c) })
}

func (t *serialTarget) shard(key ShardKey) *serialShard {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shards[key]
	if s == nil {
		s = &serialShard{written: map[serviceName]right{}}
		t.shards[key] = s
	}
	return s
}

// call makes a call. It notes first what it is going to write, and last what it has
// removed: a call may panic.
func (t *serialTarget) call(s *serialShard, c shardCall) {
	hostname, namespace, before := c.name.hostname, c.name.namespace, s.written[c.name]
	switch c.kind {
	case callEDSUpdate:
		s.written[c.name] = c.right
		t.updater.EDSUpdate(c.shard, hostname, namespace, c.list)
	case callEDSDeltaUpdate:
		if len(c.changes) == 0 {
			return
		}
		if s.written[c.name] = c.right; c.right.succeeds(before) {
			t.updater.EDSUpdate(c.shard, hostname, namespace, changeSome(sequence{}, c.changes).after.Slice())
		} else {
			t.deltas.EDSDeltaUpdate(c.shard, hostname, namespace, c.changes)
		}
	case callEDSCacheUpdate:
		s.written[c.name] = c.right
		t.updater.EDSCacheUpdate(c.shard, hostname, namespace, c.list)
	case callSvcUpdate:
		if t.updater.SvcUpdate(c.shard, hostname, namespace, c.event); c.event == registry.EventDelete {
			delete(s.written, c.name)
		}
	case callRemoveShard:
		t.updater.RemoveShard(c.shard)
		clear(s.written)
	case callPrune:
		t.prune(s, c)
	}
}

// prune empties what predecessors have left. If the updater panics for one service, the
// others are emptied all the same.
func (t *serialTarget) prune(s *serialShard, c shardCall) {
	var left []serviceName
	for name, by := range s.written {
		if c.heir.succeeds(by) {
			left = append(left, name)
		}
	}
	slices.SortFunc(left, func(a, b serviceName) int {
		return cmp.Or(cmp.Compare(a.hostname, b.hostname), cmp.Compare(a.namespace, b.namespace))
	})
	maps.DeleteFunc(s.written, func(_ serviceName, by right) bool { return c.heir.succeeds(by) })
	each(left, func(name serviceName) { t.updater.EDSUpdate(c.shard, name.hostname, name.namespace, nil) })
}
