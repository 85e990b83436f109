// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"sync"

	"go.uber.org/atomic"
)

// claim takes a shard over: the writer that the last claim of the shard returned
// has no effect any more, however late it writes. So a registry instance can be
// replaced while it is running:
//
//	w := index.claim(shard)           // the predecessor can write no more, its endpoints stay
//	index.write(w, …)                 // the new instance writes what it has
//	index.removeWhere(w, w.outdated)  // what the predecessor left goes
func (x *EndpointIndex) claim(key ShardKey) writer {
	s := x.shards.get(key)
	return writer{shard: s, claimed: true, generation: s.generation.Inc()}
}

// writer returns a writer that no claim excludes: the caller names the shard with
// each call, which is for hosts that do without claims.
func (x *EndpointIndex) writer(key ShardKey) writer { return writer{shard: x.shards.get(key)} }

// shard is a ShardKey, once for all services, and the claim that may write to it.
type shard struct {
	key ShardKey
	// generation grows with every claim.
	generation atomic.Uint64
}

// writer is the right to write to a shard. With claimed, it ends when the shard is
// claimed again, and with close.
type writer struct {
	shard      *shard
	claimed    bool
	generation uint64
}

// generationNow returns the generation under which to write, and whether writing
// is allowed. It is only worth something while a service's lock is held.
func (w writer) generationNow() (uint64, bool) {
	now := w.shard.generation.Load()
	return now, !w.claimed || now == w.generation
}

// valid reports whether writing is allowed now.
func (w writer) valid() bool {
	_, ok := w.generationNow()
	return ok
}

// outdated reports whether endpoints were last written before the claim.
func (w writer) outdated(e shardEndpoints) bool { return e.generation != w.generation }

// close ends a claim. The endpoints stay.
func (w writer) close() { w.shard.generation.CompareAndSwap(w.generation, w.generation+1) }

// shardTable finds shards; they are few and stay. Readers take no lock.
type shardTable struct {
	shards atomic.Pointer[map[ShardKey]*shard]

	mu sync.Mutex // held by writers
}

func newShardTable() *shardTable {
	t := &shardTable{}
	t.shards.Store(&map[ShardKey]*shard{})
	return t
}

func (t *shardTable) get(key ShardKey) *shard {
	if s := (*t.shards.Load())[key]; s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := (*t.shards.Load())[key]; s != nil {
		return s
	}
	next, s := maps.Clone(*t.shards.Load()), &shard{key: key}
	next[key] = s
	t.shards.Store(&next)
	return s
}
