// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"maps"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// ShardKey names the part of a service's endpoints that one registry
// contributes. It is comparable.
type ShardKey struct {
	Cluster  registry.ClusterID
	Provider registry.ProviderID
}

// ShardKeyOf returns the shard of a registry.
func ShardKeyOf(r registry.Instance) ShardKey {
	return ShardKey{Cluster: r.Cluster(), Provider: r.Provider()}
}

// String returns "provider/cluster", as Istio 1.30 prints shards.
func (k ShardKey) String() string { return string(k.Provider) + "/" + string(k.Cluster) }

// shard is a ShardKey, once for all services.
type shard struct{ key ShardKey }

// writer writes to one shard of an index.
type writer struct {
	shard *shard
	// right is asked with a service's lock held, at the moment of each write.
	right right
}

// valid reports whether writing is allowed now. What the answer is worth when the
// service's lock is released is up to the right.
func (w writer) valid() bool { return w.right.holds() }

// writer returns a writer for whoever has a right.
func (x *EndpointIndex) writer(key ShardKey, r right) writer {
	return writer{shard: x.shards.get(key), right: r}
}

// HasReported reports whether a registry of a provider has ever called an updater of
// the index for its shard.
func (x *EndpointIndex) HasReported(provider registry.ProviderID) bool {
	for key := range *x.shards.shards.Load() {
		if key.Provider == provider {
			return true
		}
	}
	return false
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
