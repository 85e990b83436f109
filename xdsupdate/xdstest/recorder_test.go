// SPDX-License-Identifier: Apache-2.0

package xdstest_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func endpoint(addresses ...string) *registry.Endpoint {
	return &registry.Endpoint{Addresses: addresses, EndpointPort: 80, ServicePortName: "http"}
}

func TestRecorderKeepsCallsInOrder(t *testing.T) {
	shard := xdsupdate.ShardKey{Cluster: "c1", Provider: registry.External}
	one, two, sick := endpoint("1.1.1.1"), endpoint("fd00::2", "2.2.2.2"), endpoint("1.1.1.1")
	sick.HealthStatus = registry.UnHealthy
	var r xdstest.DeltaRecorder
	var pushes []xdsupdate.PushType
	r.OnCall = func(c xdstest.Call) { pushes = append(pushes, c.Push) }

	r.SvcUpdate(shard, "a.example.com", "ns", registry.EventAdd)
	r.EDSUpdate(shard, "a.example.com", "ns", []*registry.Endpoint{one})
	r.EDSDeltaUpdate(shard, "a.example.com", "ns", []xdsupdate.EndpointChange{{Old: one, New: sick}, {New: two}})
	r.EDSDeltaUpdate(shard, "a.example.com", "ns", []xdsupdate.EndpointChange{{Old: two}, {Old: sick, New: endpoint("3.3.3.3")}, {}})
	r.EDSCacheUpdate(shard, "a.example.com", "ns", nil)
	r.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey("a.example.com", "ns")),
		Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1},
	})
	r.ProxyUpdate("c1", "1.1.1.1")
	r.RemoveShard(shard)

	want := []xdsupdate.PushType{
		xdsupdate.NoPush, xdsupdate.FullPush, xdsupdate.IncrementalPush, xdsupdate.IncrementalPush,
		xdsupdate.IncrementalPush, xdsupdate.NoPush, xdsupdate.NoPush, xdsupdate.NoPush,
	}
	if diff := cmp.Diff(want, pushes); diff != "" {
		t.Errorf("push types (-want +got):\n%s", diff)
	}
	r.Expect(t,
		"SvcUpdate External/c1 ns/a.example.com add",
		"EDSUpdate External/c1 ns/a.example.com [1.1.1.1:80/http]",
		"EDSDeltaUpdate External/c1 ns/a.example.com [~1.1.1.1:80/http(UnHealthy) +[fd00::2|2.2.2.2]:80/http]",
		"EDSDeltaUpdate External/c1 ns/a.example.com "+
			"[-[fd00::2|2.2.2.2]:80/http -1.1.1.1:80/http(UnHealthy) +3.3.3.3:80/http nothing]",
		"EDSCacheUpdate External/c1 ns/a.example.com []",
		"ConfigUpdate full push of ServiceEntry/ns/a.example.com (service 1)",
		"ProxyUpdate c1 1.1.1.1",
		"RemoveShard External/c1",
	)
	r.Expect(t)
	for view := range r.Index().All() {
		t.Errorf("the index has %s after RemoveShard", view.Key())
	}
}

// TestRecorderHasNoDeltas: registries must find out by a type assertion.
func TestRecorderHasNoDeltas(t *testing.T) {
	var u xdsupdate.XDSUpdater = &xdstest.Recorder{}
	if _, ok := u.(xdsupdate.EndpointDeltaUpdater); ok {
		t.Error("Recorder takes deltas")
	}
}

// failures collects the failures of a test.
type failures struct {
	testing.TB
	got []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.got = append(f.got, fmt.Sprintf(format, args...))
}

func TestExpectShowsTheDifference(t *testing.T) {
	r, f := &xdstest.Recorder{}, &failures{TB: t}
	for _, ip := range []string{"1.1.1.1", "2.2.2.2", "4.4.4.4"} {
		r.ProxyUpdate("c1", ip)
	}
	r.Expect(f, "ProxyUpdate c1 1.1.1.1", "ProxyUpdate c1 3.3.3.3", "ProxyUpdate c1 4.4.4.4")
	r.Expect(f)
	if len(f.got) != 1 {
		t.Fatalf("%d failures, want one: %q", len(f.got), f.got)
	}
	for _, line := range []string{`-[\s\p{Z}]+"ProxyUpdate c1 3.3.3.3"`, `\+[\s\p{Z}]+"ProxyUpdate c1 2.2.2.2"`} {
		if !regexp.MustCompile(line).MatchString(f.got[0]) {
			t.Errorf("the failure lacks %s:\n%s", line, f.got[0])
		}
	}
}

func TestRecorderDropsNothing(t *testing.T) {
	var r xdstest.Recorder
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				r.ProxyUpdate("c1", "1.1.1.1")
			}
		})
	}
	wg.Wait()
	if n := len(r.Take()); n != 8000 {
		t.Errorf("%d of 8000 calls are recorded", n)
	}
}
