// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// shardWriter is the right of one registry instance to write to its shard. The
// right ends when another instance claims the shard, and with Close: whatever
// the instance still does then has no effect, however late it comes. So an
// instance can be replaced while it is running:
//
//	w := index.claim(shard)  // the predecessor can write no more, its endpoints stay
//	…                        // the new instance writes what it has
//	w.Prune()                // what the predecessor left goes
type shardWriter struct {
	index *EndpointIndex
	writer
}

// claim takes a shard over. Calls on the index itself, which name the shard, are
// never refused: they are for hosts that do without claims.
func (x *EndpointIndex) claim(shard ShardKey) *shardWriter {
	s := x.shards.get(shard)
	return &shardWriter{index: x, writer: writer{shard: s, claimed: true, generation: s.generation.Inc()}}
}

// Shard returns the shard.
func (w *shardWriter) Shard() ShardKey { return w.shard.key }

// Valid reports whether the right still exists.
func (w *shardWriter) Valid() bool {
	_, ok := w.generationNow()
	return ok
}

// UpdateServiceEndpoints is EndpointIndex.UpdateServiceEndpoints; NoPush if the
// right has ended.
func (w *shardWriter) UpdateServiceEndpoints(hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) PushType {
	return w.index.write(w.writer, serviceName{hostname, namespace}, update{list: endpoints})
}

// UpdateEndpoints is EndpointIndex.UpdateEndpoints; NoPush if the right has
// ended. The first call for a service replaces what a predecessor left.
func (w *shardWriter) UpdateEndpoints(hostname registry.Hostname, namespace string, changes []EndpointChange) PushType {
	return w.index.write(w.writer, serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// DeleteService is EndpointIndex.DeleteServiceShard, if the right still exists.
func (w *shardWriter) DeleteService(hostname registry.Hostname, namespace string) {
	w.index.delete(w.writer, serviceName{hostname, namespace})
}

// Remove is EndpointIndex.RemoveShard; nil if the right has ended.
func (w *shardWriter) Remove() []ConfigKey {
	return w.index.removeWhere(w.writer, func(ShardEndpoints) bool { return true })
}

// Prune does DeleteService for every service of the shard that was last written
// before the claim. It returns the keys of those that lost endpoints, sorted; nil
// if the right has ended.
func (w *shardWriter) Prune() []ConfigKey {
	return w.index.removeWhere(w.writer, func(e ShardEndpoints) bool { return e.generation != w.generation })
}

// Close gives the right up. The endpoints stay.
func (w *shardWriter) Close() { w.shard.generation.CompareAndSwap(w.generation, w.generation+1) }

// shard is a ShardKey, once for all services, and who may write to it.
type shard struct {
	key ShardKey
	// generation grows with every claim.
	generation atomic.Uint64
}

// writer is who writes to a shard: the holder of a claim, or anybody.
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
