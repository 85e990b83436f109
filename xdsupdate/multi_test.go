// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"testing"
	"testing/synctest"

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

// TestMultiTakesDeltas: an updater that does not take them gets complete lists.
func TestMultiTakesDeltas(t *testing.T) {
	var a xdstest.DeltaRecorder
	var b xdstest.Recorder
	u, ok := xdsupdate.Multi(&a, &b).(xdsupdate.EndpointDeltaUpdater)
	if !ok {
		t.Fatal("Multi takes no deltas")
	}
	first := ep("1.1.1.1")
	u.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{New: first}})
	u.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{New: ep("2.2.2.2")}})
	u.EDSDeltaUpdate(shardOf("c1"), host, ns, []xdsupdate.EndpointChange{{Old: first}})
	u.EDSDeltaUpdate(shardOf("c1"), host, ns, nil)
	a.Expect(t, "EDSDeltaUpdate Kubernetes/c1 default/a.example.com [+1.1.1.1:8080/http]",
		"EDSDeltaUpdate Kubernetes/c1 default/a.example.com [+2.2.2.2:8080/http]",
		"EDSDeltaUpdate Kubernetes/c1 default/a.example.com [-1.1.1.1:8080/http]")
	b.Expect(t, "EDSUpdate Kubernetes/c1 default/a.example.com [1.1.1.1:8080/http]",
		"EDSUpdate Kubernetes/c1 default/a.example.com [1.1.1.1:8080/http 2.2.2.2:8080/http]",
		"EDSUpdate Kubernetes/c1 default/a.example.com [2.2.2.2:8080/http]")
	callEverything(xdsupdate.Multi())
	if got := xdsupdate.Multi(nil, &a, nil); got != xdsupdate.XDSUpdater(&a) {
		t.Errorf("Multi of one is %v, want that one", got)
	}
	if got := xdsupdate.Multi(nil); got != xdsupdate.XDSUpdater(xdsupdate.Discard{}) {
		t.Errorf("Multi of none is %v, want Discard", got)
	}
}

func TestDiscard(t *testing.T) {
	callEverything(xdsupdate.Discard{})
	if _, ok := xdsupdate.XDSUpdater(xdsupdate.Discard{}).(xdsupdate.EndpointDeltaUpdater); !ok {
		t.Error("Discard wants complete lists")
	}
}

// TestMultiBatches: a batch is one of all updaters.
func TestMultiBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pushers := []*xdsupdate.Pusher{newQuietPusher(), newQuietPusher()}
		var recorder xdstest.Recorder
		m := xdsupdate.Multi(pushers[0], &recorder, pushers[1])
		waiting := func(want uint64) {
			t.Helper()
			for _, p := range pushers {
				if n := p.State().Full.Requests; n != want {
					t.Errorf("%d requests wait, want %d", n, want)
				}
			}
			if n := len(recorder.Take()); n != int(want) {
				t.Errorf("%d calls, want %d", n, want)
			}
		}
		xdsupdate.UpdateBatch(m, func(w xdsupdate.XDSUpdater) {
			w.ConfigUpdate(fullPush("a"))
			w.ConfigUpdate(fullPush("b"))
			waiting(0)
		})
		waiting(2)
	})
}
