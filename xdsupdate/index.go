// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// EndpointIndex keeps the endpoints of all services, by host name, namespace and
// shard, and decides what a change of them means for proxies.
//
// Updates come one after the other, and none is lost. Readers wait for none, and take no
// lock: of each service they see one update after the other.
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
	views *pmap.Live[serviceName, *ServiceEndpoints]

	// mu guards what follows and is held by whoever changes views.
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

// UpdateServiceEndpoints replaces a shard's endpoints for a service. The list is
// kept and must not be modified afterwards. It should be sorted by
// registry.CompareEndpoints; if it is not, a copy is sorted. It may hold several
// endpoints with the same key; nil is left out. It costs one comparison for each
// endpoint, or a comparison of pointers if the endpoints are those of the last list.
func (x *EndpointIndex) UpdateServiceEndpoints(
	shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint,
) PushType {
	return x.write(shard, nil, serviceName{hostname, namespace}, update{list: endpoints})
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
	return x.write(shard, nil, serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// DeleteServiceShard removes a shard's endpoints for a service and all that is
// remembered of them. The service itself goes if no shard has endpoints. The
// accounts become those of the endpoints that are left.
func (x *EndpointIndex) DeleteServiceShard(shard ShardKey, hostname registry.Hostname, namespace string) {
	x.define(shard, serviceName{hostname, namespace}, registry.EventDelete)
}

// RemoveShard does DeleteServiceShard for every service that the shard has or
// had endpoints of. It returns the keys of those that lost endpoints, sorted.
func (x *EndpointIndex) RemoveShard(shard ShardKey) []ConfigKey {
	return x.removeAll(shard, func(*right) bool { return true })
}

// Service returns the endpoints of a service; nil, which is a valid view, if the
// index does not know it. It takes no lock.
func (x *EndpointIndex) Service(hostname registry.Hostname, namespace string) *ServiceEndpoints {
	return x.find(serviceName{hostname, namespace})
}

// All returns the services, in no order. Each is shown as it is when it is
// yielded; those that come or go meanwhile may be shown or not.
func (x *EndpointIndex) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		x.views.Entries(func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool { return yield(e.Value) })
	}
}

// Snapshot returns the endpoints of all services as they are now. It costs the same
// whatever their number, and holds up updates for no longer than one of them does.
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
	if x == nil {
		return nil
	}
	v, _ := x.views.Get(serviceName{hostname, namespace})
	return v
}

// All returns the services, in no order.
func (x *EndpointSnapshot) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		if x != nil {
			x.views.Entries(func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool { return yield(e.Value) })
		}
	}
}

// ChangedSince yields the host names of services that have other endpoints, or that are
// known in one of the two only, since an older snapshot, nil for an empty one; it may
// yield one more than once. It costs the work of what was written since then.
func (x *EndpointSnapshot) ChangedSince(old *EndpointSnapshot) iter.Seq[registry.Hostname] {
	return func(yield func(registry.Hostname) bool) {
		x.all().Changes(old.all(), func(before, after *pmap.Entry[serviceName, *ServiceEndpoints]) bool {
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

// removeAll removes a shard's endpoints for the services of which they were last written
// by such a right, with all that is remembered of them, and returns the keys of those
// that lost endpoints.
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
