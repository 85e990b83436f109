// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
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

// ShardWriter is the updater of one registry instance. The first delta for a service that a
// predecessor has written to replaces all endpoints of the shard, so that it is the complete list.
// ConfigUpdate and ProxyUpdate have no effect after Close.
type ShardWriter interface {
	XDSUpdater
	EndpointDeltaUpdater
	BatchUpdater

	// Take takes a shard over now, before the first call for it, unless it belongs to a
	// younger writer.
	Take(shard ShardKey)

	// Complete removes the endpoints that predecessors left in the writer's shards and
	// that the writer has not written since, and has their services pushed. Call it when
	// the registry has synced. It may be called at the same time as other methods.
	Complete()

	// Shards returns the shards of the writer, sorted: the owned ones, and the shards of held calls.
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
func (g *Writers) New() ShardWriter { return g.newWriter() }

// NewHeld returns a new writer that holds its updates back. join ends that: it commits first and the held
// updates as one update. The calls of first are valid regardless of the writers. Call Deliver afterwards.
func (g *Writers) NewHeld() (w ShardWriter, join func(first *Update)) {
	held := g.newWriter()
	held.holding = true
	return held, held.join
}

// Commit commits an update that is valid regardless of the writers. It calls no code of the host: call Deliver
// afterwards.
func (g *Writers) Commit(u *Update) {
	g.target.begin()
	g.target.commit(u, nil)
}

// Deliver calls updaters of the host for committed updates. It panics after all calls if one of them panicked.
func (g *Writers) Deliver() { deliver(g.target) }

func (g *Writers) newWriter() *shardWriter {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	w := &shardWriter{group: g, age: g.made}
	w.to, w.alone.writer = w, w
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

	// mu keeps updates in order while some are held back.
	mu      sync.Mutex
	holding bool
	held    Update
	// commits is the number of held updates.
	commits int
}

var (
	_ target      = (*shardWriter)(nil)
	_ ShardWriter = (*shardWriter)(nil)
)

func (w *shardWriter) begin()                                   { w.group.target.begin() }
func (w *shardWriter) follows() bool                            { return w.group.target.follows() }
func (w *shardWriter) deliver(panicked func(*guard.PanicError)) { w.group.target.deliver(panicked) }
func (w *shardWriter) shardsOf(other *shardWriter) []ShardKey   { return w.group.target.shardsOf(other) }

func (w *shardWriter) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holding || w.group.target.holds()
}

// commit adds the writer to those through which an update has come.
func (w *shardWriter) commit(u *Update, by *stack) {
	if by == nil {
		by = &w.alone
	} else {
		by = &stack{w, by}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holding || u.stacked() {
		u = w.withStacks(u, by)
	}
	if w.holding {
		w.held.Add(u)
		w.commits++
		return
	}
	w.group.target.commit(u, by)
}

// stacked reports whether some calls have stacks of their own.
func (u *Update) stacked() bool {
	for i := range u.calls {
		if u.calls[i].by != nil {
			return true
		}
	}
	return false
}

// withStacks returns an update whose calls have stacks with the writer.
func (w *shardWriter) withStacks(u *Update, by *stack) *Update {
	own := &Update{recorder{calls: slices.Clone(u.calls)}}
	for i := range own.calls {
		if c := &own.calls[i]; c.by != nil {
			c.by = &stack{w, c.by}
		} else {
			c.by = by
		}
	}
	return own
}

// join ends the holding.
func (w *shardWriter) join(first *Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := Update{recorder{calls: slices.Concat(first.calls, w.held.calls)}}
	w.group.Commit(&u)
	for range w.commits { // each has begun
		w.group.target.commit(&Update{}, nil)
	}
	w.holding, w.held, w.commits = false, Update{}, 0
}

// Take takes a shard over.
func (w *shardWriter) Take(shard ShardKey) { w.one(call{kind: callTake, shard: shard}) }

// Complete removes what predecessors have left.
func (w *shardWriter) Complete() { w.one(call{kind: callComplete, writer: w}) }

// Shards returns the owned shards and the shards of held calls.
func (w *shardWriter) Shards() []ShardKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.group.target.shardsOf(w)
	for i := range w.held.calls {
		if c := &w.held.calls[i]; c.kind <= callTake {
			out = append(out, c.shard)
		}
	}
	slices.SortFunc(out, compareShards)
	return slices.Compact(out)
}

// Close ends the claims.
func (w *shardWriter) Close() { w.closed.Store(true) }
