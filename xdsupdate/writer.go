// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// Writers are the registry instances that write to an updater, so that each shard has
// one writer: an instance that was replaced has no effect any more, however late it
// writes.
//
//	writers := xdsupdate.NewWriters(server)
//	first := writers.New()   // the updater of an instance
//	second := writers.New()  // that of its successor, which takes the shard over by writing
//	first.Close()            // the predecessor can write no more; its endpoints stay
//	second.Complete()        // the successor has synced: the remaining endpoints of the predecessor are removed
//
// A shard belongs to the youngest open writer that has called for it. Calls of other writers for the
// shard have no effect. Ownership is checked when an update is applied: an update of the former
// writer precedes all updates of the new one, or has no effect. No writer waits for another. The
// updater may be, or wrap (As), a writer of other Writers, because aggregates nest. An update is
// then valid if both writers own the shard.
//
// An updater of the host is called after the commit, for valid calls only, one call at a time, in the
// order of the updates. The goroutine that commits makes the calls, unless another one is making calls.
//
// Updates without a writer are always valid, and no successor removes their endpoints.
type Writers struct {
	target target

	mu   sync.Mutex
	made uint64
}

// ShardWriter is the updater of one registry instance. It is an EndpointDeltaUpdater
// if the updater behind it is; the first delta for a service that a predecessor has
// written to replaces all endpoints of the shard, so that it is the complete list.
// ConfigUpdate and ProxyUpdate have no effect after Close.
type ShardWriter interface {
	XDSUpdater
	BatchUpdater

	// Take takes a shard over now, before the first call for it, unless it belongs to a
	// younger writer.
	Take(shard ShardKey)

	// Complete removes the endpoints that predecessors left in the writer's shards and
	// that the writer has not written since, and has their services pushed. Call it when
	// the registry has synced. It may be called at the same time as other methods.
	Complete()

	// Shards returns the shards that belong to the writer now, sorted.
	Shards() []ShardKey

	// Close gives the shards up. Later calls of the writer have no effect. The endpoints stay.
	// Close may be called many times.
	Close()
}

// NewWriters returns the writers of an updater. A nil updater is Discard. Create one for each updater,
// because two Writers of one updater are independent.
func NewWriters(updater XDSUpdater) *Writers { return &Writers{target: targetOf(Multi(updater))} }

// New returns a new writer, the youngest. It takes a shard over when it first calls for
// it.
func (g *Writers) New() ShardWriter {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	w := &shardWriter{group: g, age: g.made}
	w.to, w.alone.writer = w, w
	if g.target.takesDeltas() {
		return deltaWriter{w}
	}
	return w
}

// shardWriter implements ShardWriter. It is a target, because the writers of other Writers may
// write to it.
type shardWriter struct {
	facade
	group *Writers
	// age is 1 for the first writer, and more for each that is younger.
	age    uint64
	closed atomic.Bool
	// alone is the stack of its own updates.
	alone stack
}

// deltaWriter is the writer of an updater that takes deltas.
type deltaWriter struct{ *shardWriter }

var (
	_ target               = (*shardWriter)(nil)
	_ ShardWriter          = deltaWriter{}
	_ EndpointDeltaUpdater = deltaWriter{}
)

// EDSDeltaUpdate is an update of one call.
func (w deltaWriter) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	deltaFacade{w.facade}.EDSDeltaUpdate(shard, hostname, namespace, changes)
}

func (w *shardWriter) begin()                                   { w.group.target.begin() }
func (w *shardWriter) follows() bool                            { return w.group.target.follows() }
func (w *shardWriter) takesDeltas() bool                        { return w.group.target.takesDeltas() }
func (w *shardWriter) deliver(panicked func(*guard.PanicError)) { w.group.target.deliver(panicked) }
func (w *shardWriter) shardsOf(other *shardWriter) []ShardKey   { return w.group.target.shardsOf(other) }

// commit adds the writer to those through which an update has come.
func (w *shardWriter) commit(u *Update, by *stack) {
	if by == nil {
		by = &w.alone
	} else {
		by = &stack{w, by}
	}
	w.group.target.commit(u, by)
}

// Take takes a shard over.
func (w *shardWriter) Take(shard ShardKey) { w.one(call{kind: callTake, shard: shard}) }

// Complete removes what predecessors have left.
func (w *shardWriter) Complete() { w.one(call{kind: callComplete, writer: w}) }

// Shards returns the shards that belong to the writer.
func (w *shardWriter) Shards() []ShardKey { return w.group.target.shardsOf(w) }

// Close ends the claims.
func (w *shardWriter) Close() { w.closed.Store(true) }
