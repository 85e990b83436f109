// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// EndpointIndex keeps the endpoints of all services, by host name, namespace and
// shard, and decides what a change of them means for proxies.
//
// Writers of different services do not wait for one another, and readers wait
// for none. Updates are atomic per service, and none is lost, whatever else
// happens at the same time.
//
// What an update returns, in the terms of Istio 1.30:
//
//	the first endpoints of a service that the index does not know | FullPush
//	the service accounts over all shards change                   | FullPush
//	the list becomes, or is, empty                                | IncrementalPush
//	the shard's first endpoints                                   | IncrementalPush
//	an endpoint goes or changes in any field                      | IncrementalPush
//	a new endpoint that is not UnHealthy, or that has
//	SendUnhealthyEndpoints                                        | IncrementalPush
//	anything else                                                 | NoPush
//
// An empty list keeps the service and its accounts, so that a workload that
// crashes again and again causes no full pushes. They go with
// DeleteServiceShard and RemoveShard when no shard has endpoints.
type EndpointIndex struct {
	services *directory
	shards   *shardTable
}

// NewEndpointIndex returns an empty index.
func NewEndpointIndex() *EndpointIndex {
	return &EndpointIndex{services: newDirectory(), shards: newShardTable()}
}

// UpdateServiceEndpoints replaces a shard's endpoints for a service. The list is
// kept and must not be modified afterwards. It should be sorted by
// registry.CompareEndpoints; if it is not, a copy is sorted. It may hold several
// endpoints with the same key; nil is left out. It costs one comparison for each
// endpoint, or a comparison of pointers if the endpoints are those of the last list.
func (x *EndpointIndex) UpdateServiceEndpoints(
	shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint,
) PushType {
	return x.write(x.writer(shard), serviceName{hostname, namespace}, update{list: endpoints})
}

// UpdateEndpoints changes some of a shard's endpoints for a service. It returns
// what UpdateServiceEndpoints would return for the resulting list, and NoPush if
// there are no changes. It costs the work of the changes, whatever the number of
// endpoints.
//
// The changes are made one after the other. If Old is not in the shard by its
// pointer, it stands for an endpoint that is equal; if there is none either, for
// instance because the shard was removed, New is added all the same.
func (x *EndpointIndex) UpdateEndpoints(
	shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange,
) PushType {
	return x.write(x.writer(shard), serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// DeleteServiceShard removes a shard's endpoints for a service and all that is
// remembered of them. The service itself goes if no shard has endpoints. The
// accounts become those of the endpoints that are left.
func (x *EndpointIndex) DeleteServiceShard(shard ShardKey, hostname registry.Hostname, namespace string) {
	x.delete(x.writer(shard), serviceName{hostname, namespace})
}

// RemoveShard does DeleteServiceShard for every service that the shard has or
// had endpoints of. It returns the keys of those that lost endpoints, sorted.
func (x *EndpointIndex) RemoveShard(shard ShardKey) []ConfigKey {
	return x.removeWhere(x.writer(shard), anyShard)
}

// Service returns the endpoints of a service; nil, which is a valid view, if the
// index does not know it. It takes no lock.
func (x *EndpointIndex) Service(hostname registry.Hostname, namespace string) *ServiceEndpoints {
	if s := x.services.find(serviceName{hostname, namespace}); s != nil {
		return s.view.Load()
	}
	return nil
}

// All returns the services, in no order. Each is shown as it is when it is
// yielded; those that come or go meanwhile may be shown or not.
func (x *EndpointIndex) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		for s := range x.services.all {
			if view := s.view.Load(); view != nil && !yield(view) {
				return
			}
		}
	}
}

func (x *EndpointIndex) write(w writer, name serviceName, u update) PushType {
	if u.delta && len(u.changes) == 0 {
		return NoPush
	}
	if slices.Contains(u.list, nil) {
		u.list = slices.DeleteFunc(slices.Clone(u.list), func(e *registry.Endpoint) bool { return e == nil })
	}
	for {
		s := x.services.find(name)
		if s == nil {
			if _, ok := w.generationNow(); !ok {
				return NoPush
			}
			if u.empty() {
				return IncrementalPush
			}
			s = x.services.findOrAdd(name)
		}
		if push, ok := s.write(x.services, w, u); ok {
			return push
		}
	}
}

func (x *EndpointIndex) delete(w writer, name serviceName) {
	if s := x.services.find(name); s != nil {
		s.removeShard(x.services, w, nil)
	}
}

// anyShard is a condition for removeWhere that always holds.
func anyShard(shardEndpoints) bool { return true }

// removeWhere visits every service with its lock: a writer that still has the
// right to write when it holds the lock has ended before, or comes after.
func (x *EndpointIndex) removeWhere(w writer, where func(shardEndpoints) bool) []ConfigKey {
	var out []ConfigKey
	for s := range x.services.all {
		if s.removeShard(x.services, w, where) {
			out = append(out, ServiceKey(s.Key.hostname, s.Key.namespace))
		}
	}
	slices.SortFunc(out, ConfigKey.Compare)
	return out
}
