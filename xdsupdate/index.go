// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// EndpointIndex stores the endpoints of all services by host name, namespace and shard, and decides
// how a change of endpoints affects proxies.
//
// Updates are serialized, and none is lost. Readers take no lock and never wait. They see the
// updates of each service in order.
//
// The result of an update, in the terms of Istio 1.30:
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
// An empty list keeps the service and its accounts, so a workload that crashes repeatedly causes no
// full pushes. DeleteServiceShard and RemoveShard delete them if no shard has endpoints.
type EndpointIndex struct {
	views *pmap.Live[serviceName, *ServiceEndpoints]

	// mu guards the fields below and all changes of views.
	mu     sync.Mutex
	shards map[ShardKey]*shard
}

// serviceName is how services are found.
type serviceName struct {
	hostname  registry.Hostname
	namespace string
}

// NewEndpointIndex returns an empty index.
func NewEndpointIndex() *EndpointIndex {
	return &EndpointIndex{views: pmap.Map[serviceName, *ServiceEndpoints]{}.Live(), shards: map[ShardKey]*shard{}}
}

// UpdateServiceEndpoints replaces a shard's endpoints for a service. It keeps the list, which must
// not be modified afterwards. The list should be sorted by registry.CompareEndpoints; otherwise a
// copy is sorted. It may contain several endpoints with the same key. Nil elements are ignored. The
// cost is one comparison for each endpoint, or a comparison of pointers for endpoints of the
// previous list.
func (x *EndpointIndex) UpdateServiceEndpoints(
	shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint,
) PushType {
	return x.write(shard, nil, serviceName{hostname, namespace}, update{list: endpoints})
}

// UpdateEndpoints changes some of a shard's endpoints for a service. It returns the result of
// UpdateServiceEndpoints for the resulting list, or NoPush if there are no changes. The cost
// depends only on the number of changes.
//
// The changes are applied in order. If the shard does not contain the pointer Old, Old stands for
// an equal endpoint. If there is none, for example because the shard was removed, New is added
// nevertheless.
func (x *EndpointIndex) UpdateEndpoints(
	shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange,
) PushType {
	return x.write(shard, nil, serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// DeleteServiceShard removes a shard's endpoints for a service and all data about them. If no shard
// has endpoints, it removes the service. Otherwise the accounts are recomputed from the remaining
// endpoints.
func (x *EndpointIndex) DeleteServiceShard(shard ShardKey, hostname registry.Hostname, namespace string) {
	x.define(shard, serviceName{hostname, namespace}, registry.EventDelete)
}

// RemoveShard calls DeleteServiceShard for every service of the shard. It returns the sorted keys
// of the services that lost endpoints.
func (x *EndpointIndex) RemoveShard(shard ShardKey) []ConfigKey {
	return x.removeAll(shard, func(*right) bool { return true })
}

// Service returns the endpoints of a service; nil, which is a valid view, if the
// index does not know it. It takes no lock.
func (x *EndpointIndex) Service(hostname registry.Hostname, namespace string) *ServiceEndpoints {
	return x.find(serviceName{hostname, namespace})
}

// All returns the services in unspecified order. Each is in its state at the time of the yield.
// Services that are added or deleted meanwhile may be missing or present.
func (x *EndpointIndex) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		x.views.Entries(func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool { return yield(e.Value) })
	}
}

// Snapshot returns the present endpoints of all services. The cost is constant, and it delays
// updates only as long as another update would.
func (x *EndpointIndex) Snapshot() *EndpointSnapshot {
	return &EndpointSnapshot{views: x.snapshot()}
}

// EndpointSnapshot is an EndpointIndex at one moment. It is immutable; nil is an empty
// one.
type EndpointSnapshot struct {
	views pmap.Map[serviceName, *ServiceEndpoints]
}

// Service returns the endpoints of a service; nil if the index did not know it.
func (x *EndpointSnapshot) Service(hostname registry.Hostname, namespace string) *ServiceEndpoints {
	v, _ := x.all().Get(serviceName{hostname, namespace})
	return v
}

// All returns the services, in no order.
func (x *EndpointSnapshot) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		x.all().Entries(func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool { return yield(e.Value) })
	}
}

// ChangedSince yields the host names of services that differ from an older snapshot or exist in
// only one of the two. A nil snapshot is empty. A name may be yielded more than once. The cost
// depends only on the number of writes since then.
func (x *EndpointSnapshot) ChangedSince(old *EndpointSnapshot) iter.Seq[registry.Hostname] {
	return func(yield func(registry.Hostname) bool) {
		pmap.Changes(old.all(), x.all(), func(before, after *pmap.Entry[serviceName, *ServiceEndpoints]) bool {
			if after == nil {
				after = before
			}
			return yield(after.Key.hostname)
		})
	}
}

func (x *EndpointSnapshot) all() (none pmap.Map[serviceName, *ServiceEndpoints]) {
	if x == nil {
		return none
	}
	return x.views
}

func (x *EndpointIndex) snapshot() pmap.Map[serviceName, *ServiceEndpoints] {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.views.Snapshot()
}

// find returns the last view of a service, or nil.
func (x *EndpointIndex) find(name serviceName) *ServiceEndpoints {
	v, _ := x.views.Get(name)
	return v
}

func (x *EndpointIndex) write(shard ShardKey, by *right, name serviceName, u update) PushType {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.writeLocked(shard, by, name, u)
}

// define takes that a shard defines a service, or does no more.
func (x *EndpointIndex) define(shard ShardKey, name serviceName, event registry.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shardLocked(shard)
	if view := x.find(name); view != nil && event == registry.EventDelete {
		x.removeLocked(view, shard)
	}
}

// removeAll removes a shard's endpoints, and all data about them, for the services that such a
// right wrote last. It returns the sorted keys of the services that lost endpoints.
func (x *EndpointIndex) removeAll(shard ShardKey, written func(by *right) bool) []ConfigKey {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shardLocked(shard)
	var out []ConfigKey
	for _, e := range x.views.Snapshot().All() {
		if i, found := e.find(shard); found && written(e.shards[i].by) && x.removeLocked(e, shard) {
			out = append(out, e.Key())
		}
	}
	slices.SortFunc(out, ConfigKey.Compare)
	return out
}
