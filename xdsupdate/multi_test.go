// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// callEverything makes each call of XDSUpdater once.
func callEverything(u xdsupdate.XDSUpdater) []string {
	shard := shardOf("c1")
	u.EDSUpdate(shard, host, ns, eps(ep("1.1.1.1")))
	u.EDSCacheUpdate(shard, host, ns, nil)
	u.SvcUpdate(shard, host, ns, registry.EventAdd)
	u.ConfigUpdate(fullPush("v"))
	u.ProxyUpdate("c1", "1.1.1.1")
	u.RemoveShard(shard)
	return []string{
		"EDSUpdate Kubernetes/c1 default/a.example.com [1.1.1.1:8080/http]",
		"EDSCacheUpdate Kubernetes/c1 default/a.example.com []",
		"SvcUpdate Kubernetes/c1 default/a.example.com add",
		"ConfigUpdate full push of VirtualService/default/v (config 1)",
		"ProxyUpdate c1 1.1.1.1",
		"RemoveShard Kubernetes/c1",
	}
}

func TestMultiCallsAll(t *testing.T) {
	var a xdstest.Recorder
	var b xdstest.DeltaRecorder
	want := callEverything(xdsupdate.Multi(&a, nil, &b))
	a.Expect(t, want...)
	b.Expect(t, want...)
}

// TestMultiTakesDeltasIfAllDo: otherwise those that do not would miss changes.
func TestMultiTakesDeltasIfAllDo(t *testing.T) {
	var a, b xdstest.DeltaRecorder
	u, ok := xdsupdate.Multi(&a, &b).(xdsupdate.EndpointDeltaUpdater)
	if !ok {
		t.Fatal("Multi of updaters with deltas takes none")
	}
	u.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{New: ep("1.1.1.1")}})
	a.Expect(t, "EDSDeltaUpdate Kubernetes/c1 default/a.example.com [+1.1.1.1:8080/http]")
	b.Expect(t, "EDSDeltaUpdate Kubernetes/c1 default/a.example.com [+1.1.1.1:8080/http]")
	if _, ok := xdsupdate.Multi(&a, &xdstest.Recorder{}).(xdsupdate.EndpointDeltaUpdater); ok {
		t.Error("Multi takes deltas although one updater does not")
	}
	callEverything(xdsupdate.Multi())
}

// TestMultiClaims: a shard is claimed everywhere, or nowhere.
func TestMultiClaims(t *testing.T) {
	push := func(*xdsupdate.PushRequest) {}
	a, b := xdsupdate.NewPusher(push, xdsupdate.PusherOptions{}), xdsupdate.NewPusher(push, xdsupdate.PusherOptions{})
	m, shard := xdsupdate.Multi(a, b).(xdsupdate.ShardClaimer), shardOf("c1")
	was := m.Claim(shard)
	was.EDSUpdate(shard, "a", ns, eps(ep("1.1.1.1")))
	was.EDSDeltaUpdate(shard, "b", ns, []xdsupdate.EndpointChange{{New: ep("1.1.1.1")}})
	now := m.Claim(shard)
	was.EDSUpdate(shard, "a", ns, nil)
	for _, p := range []*xdsupdate.Pusher{a, b} {
		wantAddresses(t, p.Index(), shard, "a", "1.1.1.1")
	}
	now.EDSUpdate(shard, "a", ns, eps(ep("2.2.2.2")))
	now.Prune()
	now.Close()
	now.EDSUpdate(shard, "a", ns, eps(ep("3.3.3.3")))
	for _, p := range []*xdsupdate.Pusher{a, b} {
		wantAddresses(t, p.Index(), shard, "a", "2.2.2.2")
		wantAddresses(t, p.Index(), shard, "b")
	}
	claim := xdsupdate.Multi().(xdsupdate.ShardClaimer).Claim(shard)
	callEverything(claim)
	claim.Close()
}

// TestMultiClaimsWhatCannotBeClaimed: of updaters that are no claimers calls by a claim
// that has ended are dropped, and what predecessors left is emptied.
func TestMultiClaimsWhatCannotBeClaimed(t *testing.T) {
	var plain xdstest.DeltaRecorder
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	m, shard, other := xdsupdate.Multi(&plain, pusher).(xdsupdate.ShardClaimer), shardOf("c1"), shardOf("c2")
	calls := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range plain.Take() {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	}
	was := m.Claim(shard)
	was.EDSUpdate(shard, "written", ns, eps(ep("1.1.1.1")))
	was.EDSDeltaUpdate(shard, "changed", ns, []xdsupdate.EndpointChange{{New: ep("1.1.1.1")}})
	was.EDSCacheUpdate(shard, "cached", ns, eps(ep("1.1.1.1")))
	was.EDSUpdate(shard, "gone", ns, eps(ep("1.1.1.1")))
	was.SvcUpdate(shard, "gone", ns, registry.EventDelete)
	was.EDSUpdate(other, "of-others", ns, eps(ep("1.1.1.1")))
	was.Close()
	plain.Take()
	wantAddresses(t, pusher.Index(), shard, "changed", "1.1.1.1")

	now := m.Claim(shard)
	was.EDSUpdate(shard, "written", ns, nil)
	was.EDSDeltaUpdate(shard, "changed", ns, []xdsupdate.EndpointChange{{Old: ep("1.1.1.1")}})
	was.EDSCacheUpdate(shard, "cached", ns, nil)
	was.SvcUpdate(shard, "written", ns, registry.EventDelete)
	was.RemoveShard(shard)
	was.Prune()
	calls()
	was.EDSUpdate(other, "of-others", ns, nil)
	was.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	was.ProxyUpdate("c1", "1.1.1.1")
	calls("EDSUpdate Kubernetes/c2 default/of-others []", "ConfigUpdate full push of everything", "ProxyUpdate c1 1.1.1.1")

	now.EDSUpdate(shard, "written", ns, eps(ep("2.2.2.2")))
	plain.Take()
	now.Prune()
	calls("EDSUpdate Kubernetes/c1 default/cached []", "EDSUpdate Kubernetes/c1 default/changed []")
	now.Prune()
	calls()
	wantAddresses(t, pusher.Index(), shard, "written", "2.2.2.2")
	wantAddresses(t, pusher.Index(), shard, "changed")

	now.RemoveShard(shard)
	plain.Take()
	m.Claim(shard).Prune()
	calls() // nothing is left
}

func TestDiscard(t *testing.T) {
	callEverything(xdsupdate.Discard{})
	if _, ok := xdsupdate.XDSUpdater(xdsupdate.Discard{}).(xdsupdate.EndpointDeltaUpdater); !ok {
		t.Error("Discard wants complete lists")
	}
}

// TestMultiBatches: a batch is one of all updaters that have batches.
func TestMultiBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pushers := []*xdsupdate.Pusher{newQuietPusher(), newQuietPusher()}
		m := xdsupdate.Multi(pushers[0], &xdstest.Recorder{}, pushers[1])
		var captured atomic.Int32
		var captures sync.WaitGroup
		xdsupdate.UpdateBatch(m, func() {
			for _, p := range pushers {
				captures.Go(func() { p.Capture(func() { captured.Inc() }) })
				synctest.Wait()
			}
			if n := captured.Load(); n != 0 {
				t.Errorf("%d captures in the midst of the batch", n)
			}
		})
		captures.Wait()
		if n := int(captured.Load()); n != len(pushers) {
			t.Errorf("%d captures after the batch, want %d", n, len(pushers))
		}
	})
}
