// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// follower is the target for an updater of the host. It checks at each commit which calls are valid, and
// makes these calls afterwards, one at a time, in the order of the commits, with no lock held.
type follower struct {
	updater XDSUpdater
	batches BatchUpdater         // nil if the updater has no UpdateBatch method of its own
	deltas  EndpointDeltaUpdater // nil if the updater takes complete lists only

	mu     sync.Mutex
	claims claims
	// index has the endpoints of writers and, for an updater that takes complete lists only, all others too.
	index *EndpointIndex

	spare []call

	after calls[[]call]

	// list and panicked are the arguments of makeAll, and publish is makeEach as a value, so that a
	// batch allocates nothing. Only the goroutine that delivers uses them.
	list     []call
	panicked func(*guard.PanicError)
	publish  func(XDSUpdater)
}

func newFollower(updater XDSUpdater, embeds bool) *follower {
	f := &follower{updater: updater, claims: newClaims(), index: NewEndpointIndex()}
	if !embeds { // or it would be passed by
		f.batches, _ = As[BatchUpdater](updater)
	}
	f.deltas, _ = As[EndpointDeltaUpdater](updater)
	f.publish = f.makeEach
	return f
}

func (f *follower) begin()        {}
func (f *follower) follows() bool { return true }
func (f *follower) holds() bool   { return false }

func (f *follower) deliver(panicked func(*guard.PanicError)) {
	f.after.run(func(list []call) {
		f.makeAll(list, panicked)
		f.recycle(list)
	})
}

// recycle keeps the memory of a small list for the next update.
func (f *follower) recycle(list []call) {
	clear(list)
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(list) <= maxSpare.Get() {
		f.spare = list[:0]
	}
}

func (f *follower) shardsOf(w *shardWriter) []ShardKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claims.of(w)
}

func (f *follower) commit(u *Update, by *stack) {
	if !slices.ContainsFunc(u.calls, func(c call) bool { return c.kind != callSource && c.kind != callConfigs }) && len(u.calls) > 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	made := slices.Grow(f.spare, len(u.calls))
	f.spare = nil
	for _, c := range u.calls {
		made = f.appendLocked(made, c, c.stack(by))
	}
	if len(made) > 0 || f.batches != nil {
		f.after.add(made)
	}
}

// appendLocked appends the calls that one is to the updater.
func (f *follower) appendLocked(made []call, c call, by *stack) []call {
	switch c.kind {
	case callSource, callConfigs:
		return made
	case callConfigUpdate, callProxyUpdate:
		if by.open() {
			made = append(made, c)
		}
		return made
	case callComplete:
		for shard, key := range f.claims.left(c.writer, by, f.index) {
			name := serviceName{registry.Hostname(key.Name), key.Namespace}
			made = append(made, call{kind: callEDSUpdate, shard: shard, name: name})
		}
		return made
	default: // calls about a shard
	}
	r, ok := f.claims.right(by, c.shard)
	if !ok || c.kind == callTake || c.kind == callEDSDeltaUpdate && len(c.changes) == 0 {
		return made
	}
	switch {
	case c.kind == callSvcUpdate:
		f.index.define(c.shard, c.name, c.event)
	case c.kind == callRemoveShard:
		f.index.RemoveShard(c.shard)
	case r != nil || f.deltas == nil: // a call about endpoints
		complete := f.deltas == nil || r.succeeds(f.index.find(c.name).by(c.shard))
		f.index.write(c.shard, r, c.name, c.update())
		if c.kind == callEDSDeltaUpdate && complete {
			c.kind, c.list, c.changes = callEDSUpdate, f.index.find(c.name).Shard(c.shard), nil
		}
	}
	return append(made, c)
}

// makeAll makes the calls of one update, as a batch if the updater takes such. A panic
// costs the call that panics.
func (f *follower) makeAll(list []call, panicked func(*guard.PanicError)) {
	f.list, f.panicked = list, panicked
	if f.batches != nil {
		if p := guard.Call(func() { f.batches.UpdateBatch(f.publish) }); p != nil {
			panicked(p)
		}
	}
	f.makeEach(f.updater) // the complete list if UpdateBatch panicked before it called publish, else empty
}

// makeEach makes the calls of the list and empties it.
func (f *follower) makeEach(on XDSUpdater) {
	list, panicked := f.list, f.panicked
	f.list, f.panicked = nil, nil
	for i := range list {
		f.makeOne(&list[i], on, panicked)
	}
}

func (f *follower) makeOne(c *call, on XDSUpdater, panicked func(*guard.PanicError)) {
	defer func() {
		if p := guard.Recovered(recover()); p != nil {
			panicked(p)
		}
	}()
	if c.kind == callEDSDeltaUpdate {
		deltas, ok := As[EndpointDeltaUpdater](on)
		if !ok { // the writer of a batch, though the updater does
			deltas = f.deltas
		}
		deltas.EDSDeltaUpdate(c.shard, c.name.hostname, c.name.namespace, c.changes)
		return
	}
	c.callOn(on)
}

// calls is a queue of calls of the host's code, which are made one at a time, in order, with no lock held.
// A call that is added during another call is made after it, by the same goroutine, so that the
// host may call back.
type calls[T any] struct {
	mu      sync.Mutex
	making  bool
	waiting []T
	// made is the number of calls in waiting that were made.
	made int
}

func (c *calls[T]) add(call T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, call)
}

// run makes the queued calls with f, unless another goroutine or an outer call makes them. If f panics, the
// next run continues with the next call.
func (c *calls[T]) run(f func(T)) {
	call, ok := c.first()
	defer func() {
		if ok {
			c.stop()
		}
	}()
	for ; ok; call, ok = c.next() {
		f(call)
	}
}

func (c *calls[T]) first() (call T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.making {
		return call, false
	}
	return c.takeLocked()
}

func (c *calls[T]) next() (call T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeLocked()
}

func (c *calls[T]) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.making = false
}

func (c *calls[T]) takeLocked() (call T, ok bool) {
	if c.made > maxSpare.Get() { // so that a queue which is never empty does not grow
		c.waiting, c.made = slices.Delete(c.waiting, 0, c.made), 0
	}
	if c.making = c.made < len(c.waiting); !c.making {
		if c.made = 0; cap(c.waiting) > maxSpare.Get() {
			c.waiting = nil
		}
		c.waiting = c.waiting[:0]
		return call, false
	}
	call, c.waiting[c.made] = c.waiting[c.made], call // the zero value lets go of the call
	c.made++
	return call, true
}
