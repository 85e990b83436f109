// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// recorder is the updater of a replay: it feeds the endpoint index and notes what
// it was called with.
type recorder struct {
	index *xdsupdate.EndpointIndex

	mu    sync.Mutex
	doc   int
	calls []call
}

var _ xdsupdate.XDSUpdater = (*recorder)(nil)

func (r *recorder) note(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Doc = r.doc
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

func (r *recorder) at(doc int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doc = doc
}

func (r *recorder) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.eds(callEDSUpdate, shard, hostname, namespace, endpoints)
}

func (r *recorder) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.eds(callEDSCacheUpdate, shard, hostname, namespace, endpoints)
}

func (r *recorder) eds(name string, shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	push := r.index.UpdateServiceEndpoints(shard, hostname, namespace, endpoints)
	r.note(call{
		Call: name, Shard: shard.String(), Hostname: string(hostname), Namespace: namespace,
		Endpoints: viewEndpoints(endpoints), PushType: push.String(),
	})
}

func (r *recorder) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if event == registry.EventDelete {
		r.index.DeleteServiceShard(shard, hostname, namespace)
	}
	r.note(call{Call: callSvcUpdate, Shard: shard.String(), Hostname: string(hostname), Namespace: namespace, Event: event.String()})
}

func (r *recorder) ConfigUpdate(req *xdsupdate.PushRequest) {
	c := call{Call: callConfigUpdate, Forced: req.Forced}
	for k := range req.ConfigsUpdated {
		c.ConfigsUpdated = append(c.ConfigsUpdated, k.String())
	}
	for reason := range req.Reason {
		c.Reasons = append(c.Reasons, string(reason))
	}
	slices.Sort(c.ConfigsUpdated)
	slices.Sort(c.Reasons)
	r.note(c)
}

func (r *recorder) ProxyUpdate(cluster registry.ClusterID, ip string) {
	r.note(call{Call: callProxyUpdate, Cluster: string(cluster), IP: ip})
}

func (r *recorder) RemoveShard(shard xdsupdate.ShardKey) {
	r.index.RemoveShard(shard)
	r.note(call{Call: callRemoveShard, Shard: shard.String()})
}

// deltaRecorder is a recorder that takes changes of endpoints. It notes them as
// the complete list that they lead to.
type deltaRecorder struct{ *recorder }

var _ xdsupdate.EndpointDeltaUpdater = deltaRecorder{}

func (r deltaRecorder) EDSDeltaUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	push := r.index.UpdateEndpoints(shard, hostname, namespace, changes)
	r.note(call{
		Call: callEDSUpdate, Shard: shard.String(), Hostname: string(hostname), Namespace: namespace,
		Endpoints: viewEndpoints(r.index.Service(hostname, namespace).Shard(shard)), PushType: push.String(),
	})
}
