// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

// The tests of this file are named after what some version of Istio gets wrong.
// Others are TestNoUpdateIsLost, TestOneRacerCreates, TestMergeNeverNarrows,
// TestOnePushAtATime and TestCallersNeverWait.

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestAccountsOfARemovedShardGo: Istio 1.30 keeps them until some other shard
// sends endpoints, which is then a full push out of nothing.
func TestAccountsOfARemovedShardGo(t *testing.T) {
	for name, remove := range map[string]func(*xdsupdate.EndpointIndex){
		"DeleteServiceShard": func(x *xdsupdate.EndpointIndex) { x.DeleteServiceShard(shardOf("c1"), host, ns) },
		"RemoveShard":        func(x *xdsupdate.EndpointIndex) { x.RemoveShard(shardOf("c1")) },
	} {
		index := xdsupdate.NewEndpointIndex()
		index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(ep("1.1.1.1", account("one"))))
		index.UpdateServiceEndpoints(shardOf("c2"), host, ns, eps(ep("2.2.2.2", account("two"))))
		remove(index)
		if got := index.Service(host, ns).ServiceAccounts(); !slices.Equal(got, []string{"two"}) {
			t.Errorf("%s: accounts are %q, want those of c2", name, got)
		}
		next := eps(ep("2.2.2.2", account("two")), ep("3.3.3.3", account("two")))
		if got := index.UpdateServiceEndpoints(shardOf("c2"), host, ns, next); got != incremental {
			t.Errorf("%s: the next update is %v, want %v", name, got, incremental)
		}
	}
}

// TestClustersWithDifferentAccounts: Istio 1.9 to 1.13 compare the accounts of the
// incoming shard only, so that two clusters cause a full push in turn.
func TestClustersWithDifferentAccounts(t *testing.T) {
	index := xdsupdate.NewEndpointIndex()
	for i := range 6 {
		for cluster, sa := range map[string]string{"c1": "one", "c2": "two"} {
			list := eps(ep("1.1.1."+strconv.Itoa(i), account(sa)))
			if got := index.UpdateServiceEndpoints(shardOf(cluster), host, ns, list); i > 0 && got != incremental {
				t.Errorf("update %d of %s: %v, want %v", i, cluster, got, incremental)
			}
		}
	}
}

// TestEndpointsOfOneAddress: Istio 1.14 to 1.18 know endpoints by their address
// alone, 1.30 without the port numbers and the network.
func TestEndpointsOfOneAddress(t *testing.T) {
	one := ep("1.1.1.1")
	for name, edit := range map[string]func(*registry.Endpoint){
		"port name":     func(e *registry.Endpoint) { e.ServicePortName = "grpc" },
		"service port":  func(e *registry.Endpoint) { e.ServicePort = 81 },
		"endpoint port": func(e *registry.Endpoint) { e.EndpointPort = 81 },
		"workload":      func(e *registry.Endpoint) { e.WorkloadName = "other" },
		"network":       shared(func(a *registry.EndpointAttributes) { a.Network = "other" }),
		"namespace":     shared(func(a *registry.EndpointAttributes) { a.Namespace = "other" }),
	} {
		index := xdsupdate.NewEndpointIndex()
		both := func(edits ...func(*registry.Endpoint)) []*registry.Endpoint {
			list := eps(one, ep("1.1.1.1", append(edits, edit)...))
			slices.SortFunc(list, registry.CompareEndpoints)
			return list
		}
		for i, step := range []struct {
			list []*registry.Endpoint
			want xdsupdate.PushType
		}{
			{both(), full},
			{both(), no},
			{both(health(registry.Draining)), incremental},
			{eps(one), incremental},
			{both(health(registry.UnHealthy)), no},
			{both(), incremental},
		} {
			if got := index.UpdateServiceEndpoints(shardOf("c1"), host, ns, step.list); got != step.want {
				t.Errorf("%s: step %d: %v, want %v", name, i, got, step.want)
			}
		}
	}
}

// TestEmptiedServicesDoNotLeak: Istio 1.30 keeps the key of a service that lost
// its endpoints until the service is deleted, also when its registry is gone.
func TestEmptiedServicesDoNotLeak(t *testing.T) {
	index := xdsupdate.NewEndpointIndex()
	for _, cluster := range []string{"c1", "c2"} {
		index.UpdateServiceEndpoints(shardOf(cluster), registry.Hostname(cluster), ns, eps(ep("1.1.1.1")))
		index.UpdateServiceEndpoints(shardOf(cluster), registry.Hostname(cluster), ns, nil)
	}
	if gone := index.RemoveShard(shardOf("c1")); gone != nil {
		t.Errorf("RemoveShard: %v lost endpoints, want none", gone)
	}
	want := []xdsupdate.ConfigKey{xdsupdate.ServiceKey("c2", ns)}
	if diff := cmp.Diff(want, keysOf(index)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// TestCrashLoopCausesNoFullPush: 1→0→1 again and again.
func TestCrashLoopCausesNoFullPush(t *testing.T) {
	opts := xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{Endpoints: true}}
	inBubble(t, opts, func(p *xdsupdate.Pusher, got *pushes) {
		one := ep("1.1.1.1", account("a"))
		p.EDSUpdate(shardOf("c1"), host, ns, eps(one))
		got.expect(time.Second, "100ms full push of ServiceEntry/default/a.example.com (endpoint 1)")
		for range 3 {
			p.EDSUpdate(shardOf("c1"), host, ns, nil)
			p.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{New: one}})
			p.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{Old: one}})
			p.EDSUpdate(shardOf("c1"), host, ns, eps(one))
		}
		got.expect(time.Second, "1.1s endpoint push of ServiceEntry/default/a.example.com (endpoint 12)")
	})
}

// TestUnsortedLists are stored sorted, also where the keys are equal.
func TestUnsortedLists(t *testing.T) {
	state := func(h registry.HealthStatus) *registry.Endpoint { return ep("1.1.1.1", health(h)) }
	for name, lists := range map[string][2][]*registry.Endpoint{
		"first":    {nil, eps(ep("2.2.2.2"), ep("1.1.1.1"))},
		"all new":  {eps(ep("5.5.5.5")), eps(ep("2.2.2.2"), ep("1.1.1.1"))},
		"swapped":  {eps(ep("1.1.1.1"), ep("2.2.2.2")), eps(ep("2.2.2.2"), ep("1.1.1.1"))},
		"inserted": {eps(ep("1.1.1.1"), ep("3.3.3.3")), eps(ep("1.1.1.1"), ep("3.3.3.3"), ep("2.2.2.2"))},
		"one key": {
			eps(state(registry.HealthUnset), state(registry.Healthy)), eps(state(registry.Draining), state(registry.Healthy)),
		},
	} {
		index := xdsupdate.NewEndpointIndex()
		for _, list := range lists {
			given := slices.Clone(list)
			index.UpdateServiceEndpoints(shardOf("c1"), host, ns, given)
			if !slices.Equal(given, list) {
				t.Errorf("%s: the list that was handed over is sorted now", name)
			}
		}
		got := index.Service(host, ns).Shard(shardOf("c1"))
		if len(got) != len(lists[1]) || !slices.IsSortedFunc(got, registry.CompareEndpoints) {
			t.Errorf("%s: %v is not sorted", name, got)
		}
	}
}

// TestFirstAddressMatters although two endpoints are Equal.
func TestFirstAddressMatters(t *testing.T) {
	index, a, b := xdsupdate.NewEndpointIndex(), ep("1.1.1.1"), ep("1.1.1.1")
	a.Addresses, b.Addresses = []string{"1.1.1.1", "fd00::1"}, []string{"fd00::1", "1.1.1.1"}
	index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(a))
	if got := index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(b)); !a.Equal(b) || got != incremental {
		t.Errorf("%v, want %v", got, incremental)
	}
}

// TestSharedAttributesAreComparedForEach of the endpoints that no longer share.
func TestSharedAttributesAreComparedForEach(t *testing.T) {
	one, two := ep("1.1.1.1"), ep("2.2.2.2")
	two.Shared = one.Shared
	changed := ep("2.2.2.2", shared(func(a *registry.EndpointAttributes) { a.Locality = "region" }))
	index := xdsupdate.NewEndpointIndex()
	index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(one, two))
	if got := index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(ep("1.1.1.1"), changed)); got != incremental {
		t.Errorf("%v, want %v", got, incremental)
	}
}

// TestUnknownOldEndpoints: a delta that names an endpoint that is not there.
func TestUnknownOldEndpoints(t *testing.T) {
	index, shard := xdsupdate.NewEndpointIndex(), shardOf("c1")
	index.UpdateServiceEndpoints(shard, host, ns, eps(ep("1.1.1.1"), ep("2.2.2.2")))
	for i, step := range []struct {
		changes []xdsupdate.EndpointChange
		want    xdsupdate.PushType
		left    []string
	}{
		{[]xdsupdate.EndpointChange{{Old: ep("1.1.1.1")}}, incremental, []string{"2.2.2.2"}}, // an equal one
		{[]xdsupdate.EndpointChange{{Old: ep("1.1.1.1")}}, no, []string{"2.2.2.2"}},          // none like it
		{[]xdsupdate.EndpointChange{{Old: ep("9.9.9.9"), New: ep("3.3.3.3")}}, incremental, []string{"2.2.2.2", "3.3.3.3"}},
		{[]xdsupdate.EndpointChange{{}}, no, []string{"2.2.2.2", "3.3.3.3"}},
		{nil, no, []string{"2.2.2.2", "3.3.3.3"}},
	} {
		if got := index.UpdateEndpoints(shard, host, ns, step.changes); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		wantAddresses(t, index, shard, host, step.left...)
	}
	index.DeleteServiceShard(shard, host, ns)
	if got := index.UpdateEndpoints(shard, host, ns, []xdsupdate.EndpointChange{{Old: ep("2.2.2.2"), New: ep("3.3.3.3")}}); got != full {
		t.Errorf("after a delete: %v, want %v", got, full)
	}
	wantAddresses(t, index, shard, host, "3.3.3.3")
}

// TestViews: what readers hold does not change, and stays the same as long as
// nothing does.
func TestViews(t *testing.T) {
	index, list := xdsupdate.NewEndpointIndex(), eps(ep("1.1.1.1", account("b")), ep("2.2.2.2"))
	if unknown := index.Service(host, ns); unknown.Len() != 0 || unknown.ServiceAccounts() != nil ||
		unknown.Hostname() != "" || unknown.Namespace() != "" || slices.Collect(unknown.All()) != nil ||
		unknown.Shard(shardOf("c1")) != nil {
		t.Error("an unknown service is not empty")
	}
	index.UpdateServiceEndpoints(shardOf("c2"), host, ns, list)
	view := index.Service(host, ns)
	if index.UpdateServiceEndpoints(shardOf("c2"), host, ns, slices.Clone(list)); index.Service(host, ns) != view {
		t.Error("the same endpoints made a new view")
	}
	index.UpdateServiceEndpoints(xdsupdate.ShardKey{Cluster: "c9", Provider: registry.External}, host, ns, eps(ep("4.4.4.4")))
	index.UpdateServiceEndpoints(shardOf("c1"), host, ns, eps(ep("3.3.3.3", account("a"))))
	if got := slices.Collect(view.All()); !slices.Equal(got, list) || !slices.Equal(view.ServiceAccounts(), []string{"b"}) {
		t.Errorf("a view changed: %v, %q", got, view.ServiceAccounts())
	}
	now := index.Service(host, ns)
	var shards, all []string
	for s := range now.Shards() {
		shards = append(shards, s.String())
	}
	for e := range now.All() {
		all = append(all, e.Address())
	}
	if want := []string{"External/c9", "Kubernetes/c1", "Kubernetes/c2"}; !slices.Equal(shards, want) {
		t.Errorf("shards are %q, want %q", shards, want)
	}
	if want := []string{"4.4.4.4", "3.3.3.3", "1.1.1.1", "2.2.2.2"}; !slices.Equal(all, want) || now.Len() != len(want) {
		t.Errorf("%d endpoints, %q, want %q", now.Len(), all, want)
	}
	if now.Key() != xdsupdate.ServiceKey(host, ns) || !slices.Equal(now.ServiceAccounts(), []string{"a", "b"}) {
		t.Errorf("%v has the accounts %q", now.Key(), now.ServiceAccounts())
	}
}

func TestIteratorsStop(t *testing.T) {
	index := xdsupdate.NewEndpointIndex()
	for _, shard := range []xdsupdate.ShardKey{shardOf("c1"), shardOf("c2")} {
		for _, name := range []string{"a", "b"} {
			index.UpdateServiceEndpoints(shard, registry.Hostname(name), ns, eps(ep("1.1.1.1"), ep("2.2.2.2")))
		}
	}
	n := 0
	for view := range index.All() {
		for range view.Shards() {
			n++
			break
		}
		for range view.All() {
			n++
			break
		}
		break
	}
	if n != 2 {
		t.Errorf("%d steps, want 2", n)
	}
}

func TestPushTypeString(t *testing.T) {
	var got []string
	for _, p := range []xdsupdate.PushType{no, incremental, full, 7} {
		got = append(got, p.String())
	}
	if want := []string{"NoPush", "IncrementalPush", "FullPush", "PushType(7)"}; !slices.Equal(got, want) {
		t.Errorf("String = %q, want %q", got, want)
	}
}
