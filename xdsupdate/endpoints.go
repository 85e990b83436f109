// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// ServiceEndpoints is what all registries contribute to one service at one
// moment. It is immutable: the index makes a new one for each change, so that
// equal pointers mean equal content. Nil is a service without anything.
type ServiceEndpoints struct {
	// entry is that of the index: Key is the name, Value the view itself.
	entry   pmap.Entry[serviceName, *ServiceEndpoints]
	service *service
	// shards are sorted by compareShards. Those without endpoints are kept
	// until they are removed, and not shown.
	shards []*shardEndpoints
	// accounts are sorted.
	accounts []string
	mutual   bool
	foreign  bool
}

// shardEndpoints are the endpoints of a service in one shard. It is immutable except for by, and
// cheap to copy.
type shardEndpoints struct {
	shard     *shard
	endpoints sequence
	// by is the right of the last write. It is guarded by the lock of the index.
	by *right
}

// newView returns a view without shards.
func newView(name serviceName, s *service) *ServiceEndpoints {
	v := &ServiceEndpoints{service: s}
	v.entry = pmap.Entry[serviceName, *ServiceEndpoints]{Key: name, Value: v}
	return v
}

// Hostname returns the service's host name.
func (e *ServiceEndpoints) Hostname() registry.Hostname {
	if e == nil {
		return ""
	}
	return e.entry.Key.hostname
}

// Namespace returns the service's namespace.
func (e *ServiceEndpoints) Namespace() string {
	if e == nil {
		return ""
	}
	return e.entry.Key.namespace
}

// Key returns the key that names the service in push requests.
func (e *ServiceEndpoints) Key() ConfigKey { return ServiceKey(e.Hostname(), e.Namespace()) }

// Len returns the number of endpoints in all shards.
func (e *ServiceEndpoints) Len() int {
	n := 0
	for _, shard := range e.parts() {
		n += shard.endpoints.Len()
	}
	return n
}

// Shards returns the shards that have endpoints, sorted by provider and cluster, with
// their endpoints, sorted by registry.CompareEndpoints, in new slices.
func (e *ServiceEndpoints) Shards() iter.Seq2[ShardKey, []*registry.Endpoint] {
	return func(yield func(ShardKey, []*registry.Endpoint) bool) {
		for _, shard := range e.parts() {
			if shard.endpoints.Len() > 0 && !yield(shard.shard.key, shard.endpoints.Slice()) {
				return
			}
		}
	}
}

// Shard returns the endpoints of one shard, sorted by registry.CompareEndpoints, in a
// new slice; nil if it has none.
func (e *ServiceEndpoints) Shard(key ShardKey) []*registry.Endpoint {
	return e.sequence(key).Slice()
}

// All returns the endpoints of all shards: shard by shard, in the order of
// Shards, each in its own order.
func (e *ServiceEndpoints) All() iter.Seq[*registry.Endpoint] {
	return func(yield func(*registry.Endpoint) bool) {
		for _, shard := range e.parts() {
			for endpoint := range shard.endpoints.All() {
				if !yield(endpoint) {
					return
				}
			}
		}
	}
}

// ChangesSince returns the endpoints that exist only in this state or only in an earlier one, in
// unspecified order. A replaced endpoint is returned in both states. The cost depends on the number
// of changes and on the parts of the lists that the states do not share.
func (e *ServiceEndpoints) ChangesSince(before *ServiceEndpoints) []*registry.Endpoint {
	if e == before {
		return nil
	}
	var out []*registry.Endpoint
	note := func(was, is *registry.Endpoint) {
		for _, endpoint := range []*registry.Endpoint{was, is} {
			if endpoint != nil {
				out = append(out, endpoint)
			}
		}
	}
	for _, shard := range e.parts() {
		cow.Compare(before.sequence(shard.shard.key), shard.endpoints, registry.CompareEndpoints, note)
	}
	for _, shard := range before.parts() {
		if _, found := e.find(shard.shard.key); !found {
			out = slices.AppendSeq(out, shard.endpoints.All())
		}
	}
	return out
}

// parts returns the shards.
func (e *ServiceEndpoints) parts() []*shardEndpoints {
	if e == nil {
		return nil
	}
	return e.shards
}

// sequence returns the endpoints of a shard.
func (e *ServiceEndpoints) sequence(key ShardKey) sequence {
	if i, found := e.find(key); found {
		return e.shards[i].endpoints
	}
	return sequence{}
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

// MutualTLS reports whether the service has, or had, an endpoint that accepts mutual TLS of the
// mesh (TLS mode "istio"). It stays true after the last such endpoint was removed, because
// otherwise the clusters of clients would be replaced each time such an endpoint is removed or
// added. It becomes false when the index forgets the service.
func (e *ServiceEndpoints) MutualTLS() bool { return e != nil && e.mutual }

// Foreign reports whether the service has an endpoint whose workload is in another namespace than
// the service, or had one since it was there.
func (e *ServiceEndpoints) Foreign() bool { return e != nil && e.foreign }

// by returns the right of the last write to a shard. The lock of the index must be held.
func (e *ServiceEndpoints) by(key ShardKey) *right {
	if i, found := e.find(key); found {
		return e.shards[i].by
	}
	return nil
}

func (e *ServiceEndpoints) find(key ShardKey) (int, bool) {
	return slices.BinarySearchFunc(e.parts(), key, func(s *shardEndpoints, key ShardKey) int {
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
