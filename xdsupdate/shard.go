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

// String returns "provider/cluster", as Istio 1.30 prints shards.
func (k ShardKey) String() string { return string(k.Provider) + "/" + string(k.Cluster) }
