// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// call is a call of the updater.
type call struct {
	name      string
	shard     xdsupdate.ShardKey
	hostname  registry.Hostname
	namespace string
	event     registry.Event
	push      xdsupdate.PushType
	request   *xdsupdate.PushRequest
	cluster   registry.ClusterID
	ip        string
}

// The values of call.name.
const (
	callSvcUpdate    = "SvcUpdate"
	callEDSUpdate    = "EDSUpdate"
	callConfigUpdate = "ConfigUpdate"
	callProxyUpdate  = "ProxyUpdate"
	callRemoveShard  = "RemoveShard"
)

// recorder is the updater of a replay: it feeds the endpoint index and remembers
// its calls.
type recorder struct {
	index *xdsupdate.EndpointIndex

	mu    sync.Mutex
	calls []call
}

func (r *recorder) note(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// take returns the calls since the last take.
func (r *recorder) take() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.calls
	r.calls = nil
	return out
}

func (r *recorder) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	push := r.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
	r.note(call{name: callEDSUpdate, shard: shard, hostname: hostname, namespace: namespace, push: push})
}

func (r *recorder) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.EDSUpdate(shard, hostname, namespace, endpoints)
}

func (r *recorder) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if event == registry.EventDelete {
		r.index.DeleteServiceShard(shard, hostname, namespace)
	}
	r.note(call{name: callSvcUpdate, shard: shard, hostname: hostname, namespace: namespace, event: event})
}

func (r *recorder) ConfigUpdate(req *xdsupdate.PushRequest) {
	r.note(call{name: callConfigUpdate, request: req})
}

func (r *recorder) ProxyUpdate(cluster registry.ClusterID, ip string) {
	r.note(call{name: callProxyUpdate, cluster: cluster, ip: ip})
}

func (r *recorder) RemoveShard(shard xdsupdate.ShardKey) {
	r.index.RemoveShard(shard)
	r.note(call{name: callRemoveShard, shard: shard})
}

// deltaRecorder is a recorder that takes changes of endpoints.
type deltaRecorder struct{ *recorder }

var _ xdsupdate.EndpointDeltaUpdater = deltaRecorder{}

func (r deltaRecorder) EDSDeltaUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	push := r.index.UpdateEndpoints(shard, hostname, namespace, changes)
	r.note(call{name: callEDSUpdate, shard: shard, hostname: hostname, namespace: namespace, push: push})
}
