// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
)

// BenchmarkSelectors changes one workload in a namespace with n ServiceEntries
// that select workloads, of which exactly one selects it. The figures must not
// grow with n. "store" is the cost of the config store alone.
func BenchmarkSelectors(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run(sizeName(n), func(b *testing.B) {
			p := newPlant(true)
			fill(b, p.configs.Store, selectors(n))
			p.configs.Drain()
			benchmarkEntryEvents(b, p)
			benchmarkPodEvents(b, p)
			benchmarkSelectorsLimit(b, n)
		})
	}
}

func benchmarkEntryEvents(b *testing.B, p *plant) {
	b.Helper()
	w, changed := benchWorkloadEntry(0, 0, "app-1"), benchWorkloadEntry(0, 1, "app-1")
	measurePair(b, "workloadentry-add-delete",
		func() { p.create(w) }, func() { p.delete(w) })
	p.create(w)
	measure(b, "workloadentry-update", func(i int) bool { return p.update(either(i, changed, w)) })
	p.delete(w)
	store := newStore()
	fill(b, store, []configstore.Config{w})
	measure(b, "store=workloadentry-update", func(i int) bool { return updateOnly(store, either(i, changed, w)) })
}

func benchmarkPodEvents(b *testing.B, p *plant) {
	b.Helper()
	w, changed := benchPod(0, 0, "app-1"), benchPod(0, 1, "app-1")
	measurePair(b, "pod-add-delete",
		func() { p.registry.WorkloadInstanceHandler(w, registry.EventAdd) },
		func() { p.registry.WorkloadInstanceHandler(w, registry.EventDelete) })
	p.registry.WorkloadInstanceHandler(w, registry.EventAdd)
	measure(b, "pod-update", func(i int) bool {
		before := p.updater.endpoints
		p.registry.WorkloadInstanceHandler(either(i, changed, w), registry.EventUpdate)
		return p.updater.endpoints == before+1
	})
	p.registry.WorkloadInstanceHandler(w, registry.EventDelete)
}

// benchmarkSelectorsLimit has the limits: finding the selectors by an inverted
// index, and with it the replacement of the endpoint.
func benchmarkSelectorsLimit(b *testing.B, n int) {
	b.Helper()
	limit := limitSelectors{}
	for i := range n {
		limit.add("app", fmt.Sprintf("app-%d", i))
	}
	labels := sixLabels("app-1")
	measure(b, "limit=select", func(int) bool {
		found := 0
		limit.matching(labels, func(*limitSelector) { found++ })
		return found == 1
	})
	measure(b, "limit=update", func(i int) bool {
		limit.matching(labels, func(s *limitSelector) { s.endpoints.put(&limitAddress{address: "30.0.0.1", weight: uint32(i)}) })
		return true
	})
}

func either[T any](i int, first, second T) T {
	if i%2 == 0 {
		return first
	}
	return second
}

// measurePair runs two operations in turn. ns/op is that of both, add-ns and
// delete-ns those of each.
func measurePair(b *testing.B, name string, add, remove func()) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		runtime.GC()
		var adding, removing time.Duration
		cpu := cputime.Used()
		for b.Loop() {
			start := time.Now()
			add()
			middle := time.Now()
			remove()
			adding += middle.Sub(start)
			removing += time.Since(middle)
		}
		b.ReportMetric(float64(cputime.Used()-cpu)/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(adding.Nanoseconds())/float64(b.N), "add-ns/op")
		b.ReportMetric(float64(removing.Nanoseconds())/float64(b.N), "delete-ns/op")
	})
}

// selectors are n ServiceEntries, each of which selects another app.
func selectors(n int) []configstore.Config {
	out := make([]configstore.Config, n)
	for i := range out {
		out[i] = configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: fmt.Sprintf("se-%d", i), Namespace: "ns"},
			Spec: &networking.ServiceEntry{
				Hosts: []string{fmt.Sprintf("svc-%d.example.com", i)},
				Ports: []*networking.ServicePort{
					{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 9090, Name: "grpc", Protocol: "GRPC"},
				},
				Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
				WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": fmt.Sprintf("app-%d", i)}},
			},
		}
	}
	return out
}

// benchWorkloadEntry is the WorkloadEntry number i, which differs by the round.
func benchWorkloadEntry(i, round int, app string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.WorkloadEntry, Name: fmt.Sprintf("w-%d", i), Namespace: "ns"},
		Spec: &networking.WorkloadEntry{
			Address: ipOf(30, i), Labels: sixLabels(app), Locality: "region/zone/subzone", ServiceAccount: "default",
			Weight: uint32(1 + round),
		},
	}
}

// benchPod is the pod number i, which differs by the round.
func benchPod(i, round int, app string) *registry.WorkloadInstance {
	return &registry.WorkloadInstance{
		Cluster: "c1", Kind: registry.Pod, Namespace: "ns", Name: fmt.Sprintf("pod-%d", i),
		Endpoint: &registry.Endpoint{
			Addresses: []string{ipOf(40, i)}, WorkloadName: "pods",
			Shared: &registry.EndpointAttributes{
				Labels: sixLabels(app), Namespace: "ns", ClusterID: "c1", Locality: "region/zone/subzone", TLSMode: "istio",
				ServiceAccount: "spiffe://cluster.local/ns/ns/sa/default", LbWeight: uint32(1 + round),
			},
		},
	}
}
