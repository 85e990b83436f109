// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// Owners are the registry instances that write to an updater, so that each shard has
// one writer: an instance that was replaced has no effect any more, however late it
// writes.
//
//	owners := xdsupdate.NewOwners(server)
//	first := owners.Own()   // the updater of an instance
//	second := owners.Own()  // that of its successor, which takes the shard over by writing
//	first.Close()           // the predecessor can write no more; its endpoints stay
//	second.Prune()          // the successor has synced: what it has not written goes
//
// A shard belongs to the youngest of the owners that have called for it, and are not
// closed. What another one calls for the shard has no effect. That is checked at one
// place, where the updater puts writes in an order, so that it also holds for a call that
// is in progress when the shard is taken over: either its effect precedes all that the
// new owner does, or there is none. Nobody waits for another's call.
//
//   - A Pusher, a Multi and an Owner check it themselves, also behind a wrapper (As).
//   - Any other updater is called for one thing of a shard at a time. A call that
//     comes while another one is made is made after it, by that one's goroutine, and
//     has not been made when it returns.
//
// What is written without an owner is never refused, and never pruned.
type Owners struct {
	updater XDSUpdater
	target  shardTarget
	deltas  bool // the updater takes deltas

	mu sync.Mutex
	// made counts the owners.
	made uint64
	// last has the last lease of each shard.
	last map[ShardKey]*lease
}

// Owner is the updater of one registry instance. It is an EndpointDeltaUpdater
// if the updater behind it is; the first delta for a service that a predecessor has
// written to replaces all endpoints of the shard, so that it is the complete list.
// ConfigUpdate and ProxyUpdate have no effect after Close.
type Owner interface {
	XDSUpdater
	BatchUpdater

	// Take takes a shard over now, before the first call for it, unless it belongs to a
	// younger owner.
	Take(shard ShardKey)

	// Prune removes the endpoints that predecessors left in the owner's shards and
	// that the owner has not written since, and has their services pushed. Call it when
	// the registry has synced. It may be called at the same time as other methods.
	Prune()

	// Shards returns the shards that belong to the owner now, sorted.
	Shards() []ShardKey

	// Close gives the shards up, and whatever is called later has no effect. The
	// endpoints stay. It may be called many times.
	Close()
}

// NewOwners returns the owners of an updater. A nil updater is Discard. One is made for
// each updater: two know nothing of each other.
func NewOwners(updater XDSUpdater) *Owners {
	updater = Multi(updater)
	_, deltas := As[EndpointDeltaUpdater](updater)
	return &Owners{updater: updater, target: targetOf(updater), deltas: deltas, last: map[ShardKey]*lease{}}
}

// Own returns a new owner, the youngest. It takes a shard over when it first calls for
// it.
func (o *Owners) Own() Owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made++
	out := &owner{owners: o, age: o.made}
	out.leases.Store(&map[ShardKey]*lease{})
	if o.deltas {
		return deltaOwner{out}
	}
	return out
}

// owner implements Owner.
type owner struct {
	owners *Owners
	// age is 1 for the first owner, and more for each that is younger.
	age uint64
	// leases has the last one of each shard. The map is replaced, never changed, and
	// leases end, with the lock of owners held.
	leases atomic.Pointer[map[ShardKey]*lease]
	closed atomic.Bool // changed with the lock of owners held
}

// deltaOwner is the owner of an updater that takes deltas.
type deltaOwner struct{ *owner }

var (
	_ shardTarget          = (*owner)(nil)
	_ Owner                = deltaOwner{}
	_ EndpointDeltaUpdater = deltaOwner{}
)

// lease returns the lease of a shard, which the owner takes over if it may; nil if the
// shard belongs to a younger owner, or the owner is closed.
func (o *owner) lease(shard ShardKey) *lease {
	if l := (*o.leases.Load())[shard]; l != nil && l.holds() {
		return l
	}
	o.owners.mu.Lock()
	defer o.owners.mu.Unlock()
	last := o.owners.last[shard]
	switch held := last != nil && last.holds(); {
	case o.closed.Load(), held && last.age > o.age:
		return nil
	case held && last.age == o.age:
		return last
	}
	next := &lease{owners: o.owners, age: o.age, heir: last != nil}
	if last != nil {
		last.ended.Store(true)
	}
	o.owners.last[shard] = next
	leases := maps.Clone(*o.leases.Load())
	leases[shard] = next
	o.leases.Store(&leases)
	return next
}

// Take takes a shard over.
func (o *owner) Take(shard ShardKey) { o.lease(shard) }

// Shards returns the shards that belong to the owner.
func (o *owner) Shards() []ShardKey {
	var out []ShardKey
	for shard, l := range *o.leases.Load() {
		if l.holds() {
			out = append(out, shard)
		}
	}
	slices.SortFunc(out, compareShards)
	return out
}

// Close ends the leases.
func (o *owner) Close() {
	o.owners.mu.Lock()
	defer o.owners.mu.Unlock()
	o.closed.Store(true)
	for _, l := range *o.leases.Load() {
		l.ended.Store(true)
	}
}

// Prune empties the services that predecessors have left. If the updater panics for
// one shard, the others are pruned all the same.
func (o *owner) Prune() {
	var first *guard.PanicError
	for shard, l := range *o.leases.Load() {
		if !l.heir {
			continue
		}
		p := guard.Call(func() {
			o.owners.target.callShard(shardCall{kind: callPrune, right: right{lease: l}, shard: shard, heir: l})
		})
		if first == nil {
			first = p
		}
	}
	first.Again()
}

// callShard makes a call about a shard, if it may be made.
func (o *owner) callShard(c shardCall) {
	l := o.lease(c.shard)
	if l == nil {
		return
	}
	if c.right.lease == nil {
		c.right.lease = l
	} else {
		called := c.right
		c.right = right{l, &called}
	}
	o.owners.target.callShard(c)
}

// EDSUpdate passes for a shard of the owner.
func (o *owner) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	o.callShard(shardCall{kind: callEDSUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// EDSDeltaUpdate passes for a shard of the owner.
func (o deltaOwner) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	o.callShard(shardCall{kind: callEDSDeltaUpdate, shard: shard, name: serviceName{hostname, namespace}, changes: changes})
}

// EDSCacheUpdate passes for a shard of the owner.
func (o *owner) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	o.callShard(shardCall{kind: callEDSCacheUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// SvcUpdate passes for a shard of the owner.
func (o *owner) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	o.callShard(shardCall{kind: callSvcUpdate, shard: shard, name: serviceName{hostname, namespace}, event: event})
}

// RemoveShard passes for a shard of the owner.
func (o *owner) RemoveShard(shard ShardKey) {
	o.callShard(shardCall{kind: callRemoveShard, shard: shard})
}

// ConfigUpdate passes until Close.
func (o *owner) ConfigUpdate(req *PushRequest) {
	if !o.closed.Load() {
		o.owners.updater.ConfigUpdate(req)
	}
}

// ProxyUpdate passes until Close.
func (o *owner) ProxyUpdate(cluster registry.ClusterID, ip string) {
	if !o.closed.Load() {
		o.owners.updater.ProxyUpdate(cluster, ip)
	}
}

// UpdateBatch is that of the updater.
func (o *owner) UpdateBatch(publish func()) { UpdateBatch(o.owners.updater, publish) }
