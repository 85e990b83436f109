// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// Update is a batch of calls of an XDSUpdater as a value, in the order of the calls. A Pusher applies an
// update as a whole, so that no push sees a part of it. The zero value is empty. The methods only
// record calls. An Update must not be used by several goroutines at a time.
type Update struct{ recorder }

// recorder has the methods of XDSUpdater and EndpointDeltaUpdater, for an Update and for the targets.
type recorder struct {
	calls []call
	// to gets each call as an update of its own; nil records the calls.
	to target
}

func (r *recorder) take(c call) {
	if r.to == nil {
		r.calls = append(r.calls, c)
		return
	}
	r.one(c)
}

// one commits an update of one call.
func (r *recorder) one(c call) {
	u := struct { // one allocation
		Update
		room [1]call
	}{room: [1]call{c}}
	u.calls = u.room[:]
	r.to.begin()
	r.to.commit(&u.Update, nil)
	deliver(r.to)
}

// callKind is a method of XDSUpdater or EndpointDeltaUpdater, or an internal operation.
type callKind uint8

const (
	callEDSUpdate callKind = iota
	callEDSDeltaUpdate
	callEDSCacheUpdate
	callSvcUpdate
	callRemoveShard
	// callTake claims a shard. It is the last call about a shard.
	callTake
	callConfigUpdate
	callProxyUpdate
	// callSource replaces the services or the members of a source.
	callSource
	// callConfigs takes a commit of a cache.
	callConfigs
	// callComplete removes what predecessors of a writer have left.
	callComplete
)

// call is a call of an updater as a value.
type call struct {
	kind    callKind
	shard   ShardKey // only the cluster for callProxyUpdate
	name    serviceName
	list    []*registry.Endpoint // of callEDSUpdate and callEDSCacheUpdate
	changes []EndpointChange     // of callEDSDeltaUpdate
	event   registry.Event       // of callSvcUpdate
	request *PushRequest         // of callConfigUpdate, and of callSource, or nil
	ip      string               // of callProxyUpdate
	source  *Source              // of callSource
	value   any                  // of callSource: a *registry.ServiceSet, members, or nil
	writer  *shardWriter         // of callComplete
	configs *Configs             // of callConfigs
	commit  *commit              // of callConfigs
	// by is the stack of a call that a writer has held back. Other calls have the stack of their update.
	by *stack
}

// stack returns the stack of a call of an update.
func (c *call) stack(ofUpdate *stack) *stack {
	if c.by != nil {
		return c.by
	}
	return ofUpdate
}

// maxSpare is the capacity, in calls, up to which memory is used again.
const maxSpare limit.Size = 64

// Reset empties the update. The memory of a small update is used again.
func (u *Update) Reset() {
	if cap(u.calls) > maxSpare.Get() {
		u.calls = nil
	}
	clear(u.calls)
	u.calls = u.calls[:0]
}

// EDSUpdate implements XDSUpdater.
func (r *recorder) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.take(call{kind: callEDSUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// EDSDeltaUpdate implements EndpointDeltaUpdater.
func (r *recorder) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	r.take(call{kind: callEDSDeltaUpdate, shard: shard, name: serviceName{hostname, namespace}, changes: changes})
}

// EDSCacheUpdate implements XDSUpdater.
func (r *recorder) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.take(call{kind: callEDSCacheUpdate, shard: shard, name: serviceName{hostname, namespace}, list: endpoints})
}

// SvcUpdate implements XDSUpdater.
func (r *recorder) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	r.take(call{kind: callSvcUpdate, shard: shard, name: serviceName{hostname, namespace}, event: event})
}

// ConfigUpdate implements XDSUpdater. A nil request is ignored.
func (r *recorder) ConfigUpdate(req *PushRequest) {
	if req != nil {
		r.take(call{kind: callConfigUpdate, request: req})
	}
}

// ProxyUpdate implements XDSUpdater. The call is made after its update has been applied.
func (r *recorder) ProxyUpdate(cluster registry.ClusterID, ip string) {
	r.take(call{kind: callProxyUpdate, shard: ShardKey{Cluster: cluster}, ip: ip})
}

// RemoveShard implements XDSUpdater.
func (r *recorder) RemoveShard(shard ShardKey) { r.take(call{kind: callRemoveShard, shard: shard}) }

// Add adds the calls of another update.
func (u *Update) Add(other *Update) { u.calls = append(u.calls, other.calls...) }

// Empty reports whether there are no calls.
func (u *Update) Empty() bool { return len(u.calls) == 0 }

// SetServices records the complete services of a source. Nil removes the source.
func (u *Update) SetServices(source *Source, services *registry.ServiceSet) {
	c := call{kind: callSource, source: source}
	if services != nil {
		c.value = services
	}
	u.calls = append(u.calls, c)
}

// SetMembers records the members of a source, an aggregate of others, and a request for Pushers, because other
// updaters do not read roots. The members are not nil and never change. The request may be nil.
func (u *Update) SetMembers(source *Source, members any, req *PushRequest) {
	u.calls = append(u.calls, call{kind: callSource, source: source, value: members, request: req})
}

// callOn makes a call of a method of XDSUpdater.
func (c *call) callOn(u XDSUpdater) {
	host, namespace := c.name.hostname, c.name.namespace
	switch c.kind {
	case callEDSUpdate:
		u.EDSUpdate(c.shard, host, namespace, c.list)
	case callEDSCacheUpdate:
		u.EDSCacheUpdate(c.shard, host, namespace, c.list)
	case callSvcUpdate:
		u.SvcUpdate(c.shard, host, namespace, c.event)
	case callRemoveShard:
		u.RemoveShard(c.shard)
	case callConfigUpdate:
		u.ConfigUpdate(c.request)
	case callProxyUpdate:
		u.ProxyUpdate(c.shard.Cluster, c.ip)
	case callEDSDeltaUpdate, callTake, callSource, callConfigs, callComplete: // not of all updaters
	}
}

// update returns the arguments of a call about endpoints.
func (c *call) update() update {
	return update{list: c.list, changes: c.changes, delta: c.kind == callEDSDeltaUpdate}
}

// withoutNil returns a list, which is the caller's, without nil.
func withoutNil(list []*registry.Endpoint) []*registry.Endpoint {
	if slices.Contains(list, nil) {
		list = slices.DeleteFunc(slices.Clone(list), func(e *registry.Endpoint) bool { return e == nil })
	}
	return list
}
