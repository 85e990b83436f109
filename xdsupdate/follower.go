// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// follower is the target for an updater of the host. It checks at each commit which calls are valid, and
// makes these calls afterwards, one at a time, in the order of the commits, with no lock held.
type follower struct {
	updater XDSUpdater
	batches BatchUpdater // nil if the updater has no UpdateBatch method of its own
	deltas  bool

	mu     sync.Mutex
	claims claims
	// written has the right of the last write to each service, for shards with writers. Services without
	// endpoints may be in it.
	written map[ShardKey]map[serviceName]*right

	spare []call

	after calls[[]call]

	// list and panicked are the arguments of makeAll, and publish is makeEach as a value, so that a
	// batch allocates nothing. Only the goroutine that delivers uses them.
	list     []call
	panicked func(*guard.PanicError)
	publish  func(XDSUpdater)
}

func newFollower(updater XDSUpdater, embeds bool) *follower {
	f := &follower{updater: updater, claims: newClaims(), written: map[ShardKey]map[serviceName]*right{}}
	if !embeds { // or it would be passed by
		f.batches, _ = As[BatchUpdater](updater)
	}
	_, f.deltas = As[EndpointDeltaUpdater](updater)
	f.publish = f.makeEach
	return f
}

func (f *follower) begin()            {}
func (f *follower) follows() bool     { return true }
func (f *follower) takesDeltas() bool { return f.deltas }
func (f *follower) holds() bool       { return false }

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
		return f.appendLeftLocked(made, c, by)
	default: // calls about a shard
	}
	r, ok := f.claims.right(by, c.shard)
	if !ok || c.kind == callTake {
		return made
	}
	written := f.written[c.shard]
	if written == nil && r != nil {
		written = map[serviceName]*right{}
		f.written[c.shard] = written
	}
	switch {
	case c.kind == callRemoveShard:
		delete(f.written, c.shard)
	case c.kind == callEDSDeltaUpdate && len(c.changes) == 0:
		return made
	case c.kind == callEDSDeltaUpdate && r.succeeds(written[c.name]): // it is the complete list
		c.kind, c.list, c.changes = callEDSUpdate, c.complete(), nil
	}
	if c.kind == callSvcUpdate {
		if c.event == registry.EventDelete {
			delete(written, c.name)
		}
	} else if written != nil && c.kind != callRemoveShard {
		written[c.name] = r
	}
	return append(made, c)
}

// appendLeftLocked appends calls that remove the remaining endpoints of predecessors of a writer.
func (f *follower) appendLeftLocked(made []call, c call, by *stack) []call {
	for shard, heir := range f.claims.inherited(c.writer) {
		if _, ok := f.claims.right(by, shard); !ok {
			continue
		}
		left := func(_ serviceName, by *right) bool { return heir.succeeds(by) }
		for name, by := range f.written[shard] {
			if left(name, by) {
				made = append(made, call{kind: callEDSUpdate, shard: shard, name: name})
			}
		}
		maps.DeleteFunc(f.written[shard], left)
	}
	slices.SortFunc(made, func(a, b call) int {
		return cmp.Or(compareShards(a.shard, b.shard), cmp.Compare(a.name.hostname, b.name.hostname), cmp.Compare(a.name.namespace, b.name.namespace))
	})
	return made
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
			deltas, _ = As[EndpointDeltaUpdater](f.updater)
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
