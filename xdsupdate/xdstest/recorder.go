// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Recorder is an XDSUpdater that records every call in order and drops none. It takes complete
// lists of endpoints; a DeltaRecorder takes changes, too. It also applies the calls to an
// EndpointIndex, which yields the resulting push types. The zero value is ready for use.
type Recorder struct {
	// OnCall, if not nil, is called for each call after it was recorded, on the
	// caller's goroutine, with no lock held. Set it before the first call.
	OnCall func(Call)

	mu    sync.Mutex
	calls []Call
	index *xdsupdate.EndpointIndex
}

// DeltaRecorder is a Recorder that takes changes of endpoints.
type DeltaRecorder struct{ Recorder }

var (
	_ xdsupdate.XDSUpdater           = (*Recorder)(nil)
	_ xdsupdate.XDSUpdater           = (*DeltaRecorder)(nil)
	_ xdsupdate.EndpointDeltaUpdater = (*DeltaRecorder)(nil)
)

// Take returns the calls since the last Take or Expect, and drops them.
func (r *Recorder) Take() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// Index returns an index with the endpoints that result from all calls so far.
func (r *Recorder) Index() *xdsupdate.EndpointIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.indexLocked()
}

// Expect fails the test unless the calls since the last Take or Expect are exactly the wanted ones,
// in order, each in the form of Call.String. It drops them.
func (r *Recorder) Expect(tb testing.TB, want ...string) {
	tb.Helper()
	if got := texts(r.Take()); !slices.Equal(got, want) {
		tb.Errorf("calls on the updater (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// EDSUpdate records the call.
func (r *Recorder) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.record(Call{Kind: "EDSUpdate", Shard: shard, Hostname: hostname, Namespace: namespace, Endpoints: endpoints})
}

// EDSCacheUpdate records the call.
func (r *Recorder) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	r.record(Call{Kind: "EDSCacheUpdate", Shard: shard, Hostname: hostname, Namespace: namespace, Endpoints: endpoints})
}

// SvcUpdate records the call.
func (r *Recorder) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	r.record(Call{Kind: "SvcUpdate", Shard: shard, Hostname: hostname, Namespace: namespace, Event: event})
}

// ConfigUpdate records the call.
func (r *Recorder) ConfigUpdate(req *xdsupdate.PushRequest) {
	r.record(Call{Kind: "ConfigUpdate", Request: req})
}

// ProxyUpdate records the call.
func (r *Recorder) ProxyUpdate(cluster registry.ClusterID, ip string) {
	r.record(Call{Kind: "ProxyUpdate", Cluster: cluster, IP: ip})
}

// RemoveShard records the call.
func (r *Recorder) RemoveShard(shard xdsupdate.ShardKey) {
	r.record(Call{Kind: "RemoveShard", Shard: shard})
}

// EDSDeltaUpdate records the call.
func (r *DeltaRecorder) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	r.record(Call{
		Kind: "EDSDeltaUpdate", Shard: shard, Hostname: hostname, Namespace: namespace, Changes: slices.Clone(changes),
	})
}

func (r *Recorder) record(c Call) {
	r.mu.Lock()
	c.Push = c.apply(r.indexLocked())
	r.calls = append(r.calls, c)
	r.mu.Unlock()
	if r.OnCall != nil {
		r.OnCall(c)
	}
}

func (r *Recorder) indexLocked() *xdsupdate.EndpointIndex {
	if r.index == nil {
		r.index = xdsupdate.NewEndpointIndex()
	}
	return r.index
}
