// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// countedDeltas counts the changes that it takes.
type countedDeltas struct {
	deltaRecorder
	changes *int
}

func (c countedDeltas) EDSDeltaUpdate(shard xdsupdate.ShardKey, host registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) {
	*c.changes += len(changes)
	c.deltaRecorder.EDSDeltaUpdate(shard, host, namespace, changes)
}

// A registry that changes its updater ends in the same state as one that has reported to that
// updater from the start, and it reports nothing more to the former updater.
func TestReportTo(t *testing.T) {
	t.Parallel()
	for name, deltas := range map[string]bool{"lists": false, "deltas": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			former := &recorder{index: xdsupdate.NewEndpointIndex()}
			k := kube.New(nil, former)
			hidden := shopService("ns")
			hidden.Name, hidden.Annotations = "hidden", map[string]string{"networking.istio.io/exportTo": "~"}
			empty := shopService("ns")
			empty.Name = "empty"
			k.Put(shopService("ns"))
			k.Put(hidden)
			k.Put(empty)
			k.Put(shopSlice("ns", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5"))
			k.Drain()
			before := former.take()

			changes := 0
			next := &recorder{index: xdsupdate.NewEndpointIndex()}
			var updater xdsupdate.XDSUpdater = next
			if deltas {
				updater = countedDeltas{deltaRecorder{next}, &changes}
			}
			k.Put(readyPod("ns", "p1", "10.1.0.1")) // pending events are reported first, to the former updater
			if err := k.ReportTo(t.Context(), updater); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range next.take() {
				got = append(got, c.name+" "+string(c.hostname))
			}
			want := []string{
				"SvcUpdate empty.ns.svc.cluster.local", "SvcUpdate shop.ns.svc.cluster.local", "EDSUpdate shop.ns.svc.cluster.local",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(viewAll(k, former.index), viewAll(k, next.index)); diff != "" {
				t.Errorf("the former index (-), and the next (+):\n%s", diff)
			}
			if n := len(former.take()); len(before) == 0 || n == 0 {
				t.Errorf("%d calls of the former updater, then %d for what waited", len(before), n)
			}

			k.Put(shopSlice("ns", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.9"))
			k.Drain()
			if calls := former.take(); len(calls) > 0 {
				t.Errorf("calls of the former updater: %v", calls)
			}
			calls := next.take()
			if len(calls) == 0 || (changes > 0) != deltas {
				t.Errorf("%d changes where deltas are taken: %t; calls %v", changes, deltas, calls)
			}
			if at := slices.Collect(next.index.Service("shop.ns.svc.cluster.local", "ns").All()); len(at) != 4 || at[3].Address() != "10.1.0.9" {
				t.Errorf("endpoints %v", at)
			}
		})
	}
}

// A panic of the updater costs that call.
func TestReportToPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	k := kube.New(nil, xdsupdate.Discard{}, kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	k.Put(shopService("ns"))
	k.Put(shopSlice("ns", "10.1.0.2"))
	updater := &explosive{}
	if err := k.ReportTo(t.Context(), updater); err != nil {
		t.Fatal(err)
	}
	const host = "shop.ns.svc.cluster.local"
	want := []string{"UpdateBatch", "SvcUpdate " + host, "EDSUpdate " + host}
	if !slices.Equal(updater.calls, want) {
		t.Errorf("calls %q, want %q", updater.calls, want)
	}
	for _, text := range want {
		if n := strings.Count(log.String(), `error="panic: `+text+`"`); n != 1 {
			t.Errorf("%d records of %s, want 1", n, text)
		}
	}
}

// A nil updater is Discard, from the start and later; at the start it is a warning.
func TestNoUpdater(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	k := kube.New(nil, nil, kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "the registry has no updater, so that nothing is pushed") {
		t.Errorf("log: %s", log.String())
	}
	log.Reset()
	put := func(name, address string) {
		k.Put(shopService("ns"))
		k.Put(readyPod("ns", name, address))
		k.Put(shopSlice("ns", address))
		k.Drain()
	}
	put("p1", "10.1.0.1")
	next := &recorder{index: xdsupdate.NewEndpointIndex()}
	for _, updater := range []xdsupdate.XDSUpdater{next, nil} {
		if err := k.ReportTo(t.Context(), updater); err != nil {
			t.Fatal(err)
		}
	}
	next.take()
	put("p2", "10.1.0.2")
	if calls := next.take(); len(calls) > 0 || len(k.Services()) != 1 || log.Len() > 0 {
		t.Errorf("%d services, calls %v, log: %s", len(k.Services()), calls, log.String())
	}
}
