// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

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

// String returns "provider/cluster", as Istio 1.30 prints shards, or the provider alone if the
// cluster is empty.
func (k ShardKey) String() string {
	if k.Cluster == "" {
		return string(k.Provider)
	}
	return string(k.Provider) + "/" + string(k.Cluster)
}

// shard is a ShardKey, once for all services.
type shard struct{ key ShardKey }

// HasReported reports whether a registry of a provider has ever called an updater of
// the index for its shard.
func (x *EndpointIndex) HasReported(provider registry.ProviderID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.shards {
		if key.Provider == provider {
			return true
		}
	}
	return false
}

// shardLocked returns a shard; they are few and stay.
func (x *EndpointIndex) shardLocked(key ShardKey) *shard {
	s := x.shards[key]
	if s == nil {
		s = &shard{key}
		x.shards[key] = s
	}
	return s
}
