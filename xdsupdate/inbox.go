// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// target takes updates, in one order.
type target interface {
	// begin is called before a registry shows what an update is about; commit follows.
	begin()
	// commit applies an update that has come through writers. It calls nobody's code, waits for
	// nobody's, and keeps nothing of the update but what its calls refer to.
	commit(u *Update, by *stack)
	// deliver makes the calls of the program that follow from what was committed, unless
	// another goroutine, or an outer call, is at it: then that one makes them. No lock may
	// be held.
	deliver(panicked func(*guard.PanicError))
	// follows reports whether deliver may call an updater of the program's.
	follows() bool
	// takesDeltas reports whether updates may have deltas.
	takesDeltas() bool
	// shardsOf returns the shards that belong to a writer.
	shardsOf(w *shardWriter) []ShardKey
}

// targetOf returns the target for an updater: itself if it is one, also one that it wraps (As),
// and otherwise one that calls the updater afterwards. A type that embeds a target is none: its own
// methods count.
func targetOf(updater XDSUpdater) target {
	if _, ok := updater.(Discard); ok {
		return nothing{}
	}
	t, embeds := As[target](updater)
	switch t.(type) {
	case *Pusher, *multi, deltaMulti, *shardWriter, deltaWriter:
		return t
	default:
		return newFollower(updater, embeds)
	}
}

// Inbox is where the updates of a registry go: whatever is behind an XDSUpdater. Create it
// with NewInbox.
type Inbox struct{ to target }

// NewInbox returns the inbox of an updater. A nil updater is Discard.
func NewInbox(updater XDSUpdater) Inbox { return Inbox{targetOf(Multi(updater))} }

// Begin is called before the registry shows what the next Commit is about.
func (i Inbox) Begin() { i.to.begin() }

// Commit applies an update, as a whole. It calls nobody's code, so that it may be called with
// locks held: updates are applied in the order of the calls. The update is the caller's
// again when Commit returns, but what its calls refer to is not.
func (i Inbox) Commit(u *Update) { i.to.commit(u, nil) }

// Deliver calls those updaters for what was committed that are the program's own, in the order
// of the commits, unless another goroutine, or an outer call, is at it: then that one does.
// It is called without a lock. panicked gets each panic of such a call.
func (i Inbox) Deliver(panicked func(*guard.PanicError)) { i.to.deliver(panicked) }

// Follows reports whether Deliver may call an updater.
func (i Inbox) Follows() bool { return i.to.follows() }

// TakesDeltas reports whether updates may have deltas.
func (i Inbox) TakesDeltas() bool { return i.to.takesDeltas() }

// facade makes each call of an updater an update.
type facade struct{ to target }

// one commits an update of one call.
func (f facade) one(c call) {
	u := struct { // one allocation
		Update
		room [1]call
	}{room: [1]call{c}}
	u.calls = u.room[:]
	f.to.begin()
	f.to.commit(&u.Update, nil)
	f.deliver()
}

// deliver panics in the end if a call did.
func (f facade) deliver() {
	if !f.to.follows() {
		f.to.deliver(nil)
		return
	}
	var first *guard.PanicError
	f.to.deliver(func(p *guard.PanicError) {
		if first == nil {
			first = p
		}
	})
	first.Again()
}

// EDSUpdate is an update of one call.
func (f facade) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	f.one(call{kind: callEDSUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// EDSCacheUpdate is an update of one call.
func (f facade) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	f.one(call{kind: callEDSCacheUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// SvcUpdate is an update of one call.
func (f facade) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	f.one(call{kind: callSvcUpdate, shard: shard, name: serviceName{hostname, namespace}, event: event})
}

// ConfigUpdate is an update of one call; nil asks for nothing.
func (f facade) ConfigUpdate(req *PushRequest) {
	if req != nil {
		f.one(call{kind: callConfigUpdate, request: req})
	}
}

// ProxyUpdate is an update of one call.
func (f facade) ProxyUpdate(cluster registry.ClusterID, ip string) {
	f.one(call{kind: callProxyUpdate, shard: ShardKey{Cluster: cluster}, ip: ip})
}

// RemoveShard is an update of one call.
func (f facade) RemoveShard(shard ShardKey) { f.one(call{kind: callRemoveShard, shard: shard}) }

// UpdateBatch implements BatchUpdater. What publish has called before it panics counts.
func (f facade) UpdateBatch(publish func(XDSUpdater)) {
	var u Update
	f.to.begin()
	defer func() {
		f.to.commit(&u, nil)
		f.deliver()
	}()
	if f.to.takesDeltas() {
		publish(&u)
	} else {
		publish(struct{ XDSUpdater }{&u})
	}
}

// deltaFacade is the facade of a target that takes deltas.
type deltaFacade struct{ facade }

// EDSDeltaUpdate is an update of one call.
func (f deltaFacade) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	f.one(call{kind: callEDSDeltaUpdate, shard: shard, name: serviceName{hostname, namespace}, changes: changes})
}
