// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
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
	return x.write(x.writer(shard, right{}), serviceName{hostname, namespace}, update{list: endpoints})
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
	return x.write(x.writer(shard, right{}), serviceName{hostname, namespace}, update{changes: changes, delta: true})
}

// DeleteServiceShard removes a shard's endpoints for a service and all that is
// remembered of them. The service itself goes if no shard has endpoints. The
// accounts become those of the endpoints that are left.
func (x *EndpointIndex) DeleteServiceShard(shard ShardKey, hostname registry.Hostname, namespace string) {
	x.delete(x.writer(shard, right{}), serviceName{hostname, namespace})
}

// RemoveShard does DeleteServiceShard for every service that the shard has or
// had endpoints of. It returns the keys of those that lost endpoints, sorted.
func (x *EndpointIndex) RemoveShard(shard ShardKey) []ConfigKey {
	return x.removeAll(x.writer(shard, right{}), byAnyone)
}

// Service returns the endpoints of a service; nil, which is a valid view, if the
// index does not know it. It takes no lock.
func (x *EndpointIndex) Service(hostname registry.Hostname, namespace string) *ServiceEndpoints {
	return x.services.find(serviceName{hostname, namespace}).known()
}

// All returns the services, in no order. Each is shown as it is when it is
// yielded; those that come or go meanwhile may be shown or not.
func (x *EndpointIndex) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		x.services.views.Entries(knownOnly(yield))
	}
}

// Snapshot returns the endpoints of all services as they are now. It costs the same
// whatever their number, and holds up updates for no longer than one of them does.
func (x *EndpointIndex) Snapshot() *EndpointSnapshot {
	return &EndpointSnapshot{views: x.services.snapshot()}
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
	return v.known()
}

// All returns the services, in no order.
func (x *EndpointSnapshot) All() iter.Seq[*ServiceEndpoints] {
	return func(yield func(*ServiceEndpoints) bool) {
		if x != nil {
			x.views.Entries(knownOnly(yield))
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

func knownOnly(yield func(*ServiceEndpoints) bool) func(*pmap.Entry[serviceName, *ServiceEndpoints]) bool {
	return func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool {
		v := e.Value.known()
		return v == nil || yield(v)
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
		var s *service
		if view := x.services.find(name); view != nil {
			s = view.service
		} else {
			if !w.valid() {
				return NoPush
			}
			if u.empty() {
				return IncrementalPush
			}
			s = x.services.findOrAdd(name)
		}
		if push, ok := s.write(x.services, name, w, u); ok {
			return push
		}
	}
}

func (x *EndpointIndex) delete(w writer, name serviceName) {
	if view := x.services.find(name); view != nil {
		view.service.removeShard(x.services, name, w, nil)
	}
}

// removeAll removes a shard's endpoints for the services of which they were last written
// by such a right, with all that is remembered of them, and returns the keys of those
// that lost endpoints. It visits every service with its lock: a writer that still has the
// right to write when it holds the lock has ended before, or comes after.
func (x *EndpointIndex) removeAll(w writer, written func(by right) bool) []ConfigKey {
	var out []ConfigKey
	x.services.views.Entries(func(e *pmap.Entry[serviceName, *ServiceEndpoints]) bool {
		if e.Value.service.removeShard(x.services, e.Key, w, written) {
			out = append(out, e.Value.Key())
		}
		return true
	})
	slices.SortFunc(out, ConfigKey.Compare)
	return out
}

// byAnyone has removeAll remove the shard from all services.
func byAnyone(right) bool { return true }
