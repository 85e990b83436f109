// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// ServiceEndpoints is what all registries contribute to one service at one
// moment. It is immutable: the index makes a new one for each change, so that
// equal pointers mean equal content. Nil is a service without anything.
type ServiceEndpoints struct {
	service *service
	// shards are sorted by compareShards. Those without endpoints are kept for
	// their generation, and not shown.
	shards []*shardEndpoints
	// accounts are sorted.
	accounts []string
	mutual   bool
}

// shardEndpoints is what one registry contributes to one service. It is
// immutable; copying it is cheap.
type shardEndpoints struct {
	shard *shard
	// generation is that of the writer.
	generation uint64
	endpoints  sequence
}

// Hostname returns the service's host name.
func (e *ServiceEndpoints) Hostname() registry.Hostname {
	if e == nil {
		return ""
	}
	return e.service.Key.hostname
}

// Namespace returns the service's namespace.
func (e *ServiceEndpoints) Namespace() string {
	if e == nil {
		return ""
	}
	return e.service.Key.namespace
}

// Key returns the key that names the service in push requests.
func (e *ServiceEndpoints) Key() ConfigKey { return ServiceKey(e.Hostname(), e.Namespace()) }

// Len returns the number of endpoints in all shards.
func (e *ServiceEndpoints) Len() int {
	if e == nil {
		return 0
	}
	n := 0
	for _, shard := range e.shards {
		n += shard.endpoints.Len()
	}
	return n
}

// Shards returns the shards that have endpoints, sorted by provider and cluster, with
// their endpoints, sorted by registry.CompareEndpoints, in new slices.
func (e *ServiceEndpoints) Shards() iter.Seq2[ShardKey, []*registry.Endpoint] {
	return func(yield func(ShardKey, []*registry.Endpoint) bool) {
		if e == nil {
			return
		}
		for _, shard := range e.shards {
			if shard.endpoints.Len() > 0 && !yield(shard.shard.key, shard.endpoints.Slice()) {
				return
			}
		}
	}
}

// Shard returns the endpoints of one shard, sorted by registry.CompareEndpoints, in a
// new slice; nil if it has none.
func (e *ServiceEndpoints) Shard(key ShardKey) []*registry.Endpoint {
	if i, found := e.find(key); found {
		return e.shards[i].endpoints.Slice()
	}
	return nil
}

// All returns the endpoints of all shards: shard by shard, in the order of
// Shards, each in its own order.
func (e *ServiceEndpoints) All() iter.Seq[*registry.Endpoint] {
	return func(yield func(*registry.Endpoint) bool) {
		if e == nil {
			return
		}
		for _, shard := range e.shards {
			for endpoint := range shard.endpoints.All() {
				if !yield(endpoint) {
					return
				}
			}
		}
	}
}

// ServiceAccounts returns the identities that the endpoints have, sorted. When a
// service has just lost its last endpoint through an empty list it still has
// their accounts, so that its return is not a change of the service. The slice
// is shared and read-only.
func (e *ServiceEndpoints) ServiceAccounts() []string {
	if e == nil {
		return nil
	}
	return e.accounts
}

// MutualTLS reports whether the service has an endpoint that takes mutual TLS of the
// mesh (TLS mode "istio"), or had one: what clients need for it is not taken back when
// the last of these leaves, and given again when the next one comes, for that would
// replace their clusters each time. It ends when the index forgets the service.
func (e *ServiceEndpoints) MutualTLS() bool { return e != nil && e.mutual }

func (e *ServiceEndpoints) find(key ShardKey) (int, bool) {
	if e == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(e.shards, key, func(s *shardEndpoints, key ShardKey) int {
		return compareShards(s.shard.key, key)
	})
}

func compareShards(a, b ShardKey) int {
	if a == b {
		return 0
	}
	if c := strings.Compare(string(a.Provider), string(b.Provider)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Cluster), string(b.Cluster))
}
