// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
)

// BenchmarkWorkloads changes one of the n workloads that one ServiceEntry selects.
// With an updater that takes deltas the figures must not grow with n; with one
// that takes complete lists the limit is a copy of the list. heap-B/workload is
// what the registry and the endpoint index keep for each, without the config or
// the instance.
func BenchmarkWorkloads(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(sizeName(n), func(b *testing.B) {
			for _, deltas := range []bool{true, false} {
				updater := "lists"
				if deltas {
					updater = "deltas"
				}
				benchmarkManyEntries(b, "workloadentry-"+updater, n, n, deltas)
				benchmarkManyPods(b, "pod-"+updater, n, deltas)
			}
			benchmarkManyEntries(b, "workloadentry-one-selected", n, 1, true)
			benchmarkWorkloadsLimit(b, n)
		})
	}
}

// benchmarkManyEntries selects some of n WorkloadEntries, and changes one of
// those.
func benchmarkManyEntries(b *testing.B, name string, n, selected int, deltas bool) {
	b.Helper()
	p := newPlant(deltas)
	store := p.configs.Store
	fill(b, store, selectors(1))
	p.configs.Drain()
	states := make([][2]configstore.Config, n)
	for i := range states {
		app := "app-0"
		if i >= selected {
			app = "other"
		}
		states[i] = [2]configstore.Config{benchWorkloadEntry(i, 0, app), benchWorkloadEntry(i, 1, app)}
	}
	initial := make([]configstore.Config, n)
	for i := range initial {
		initial[i] = states[i][0]
	}
	fill(b, store, initial)
	before := liveHeap()
	p.configs.Drain()
	heap := (liveHeap() - before) / float64(n)
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		runtime.GC()
		before, i, start := p.updater.endpoints, 0, cputime.Used()
		for b.Loop() {
			p.update(states[i*stride%selected][1-i/selected%2])
			i++
		}
		if got := p.updater.endpoints - before; got != b.N {
			b.Fatalf("%d updates of endpoints after %d changes", got, b.N)
		}
		b.ReportMetric(heap, "heap-B/workload")
		b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
	})
	runtime.KeepAlive(p)
}

func benchmarkManyPods(b *testing.B, name string, n int, deltas bool) {
	b.Helper()
	p := newPlant(deltas)
	fill(b, p.configs.Store, selectors(1))
	p.configs.Drain()
	states := make([][2]*registry.WorkloadInstance, n)
	for i := range states {
		states[i] = [2]*registry.WorkloadInstance{benchPod(i, 0, "app-0"), benchPod(i, 1, "app-0")}
	}
	before := liveHeap()
	for i := range states {
		p.registry.WorkloadInstanceHandler(states[i][0], registry.EventAdd)
	}
	heap := (liveHeap() - before) / float64(n)
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		runtime.GC()
		before, i, start := p.updater.endpoints, 0, cputime.Used()
		for b.Loop() {
			p.registry.WorkloadInstanceHandler(states[i*stride%n][1-i/n%2], registry.EventUpdate)
			i++
		}
		if got := p.updater.endpoints - before; got != b.N {
			b.Fatalf("%d updates of endpoints after %d changes", got, b.N)
		}
		b.ReportMetric(heap, "heap-B/workload")
		b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
	})
	runtime.KeepAlive(p)
}

// benchmarkWorkloadsLimit has the limits: the replacement of one element in a
// sequence of chunks, and in a flat list.
func benchmarkWorkloadsLimit(b *testing.B, n int) {
	b.Helper()
	all := make([]*limitAddress, n)
	for i := range all {
		all[i] = &limitAddress{address: fmt.Sprintf("30.0.%05d", i)}
	}
	sequence := newLimitSequence(slices.Clone(all))
	measure(b, "limit=chunks", func(i int) bool {
		sequence.put(&limitAddress{address: all[i*stride%n].address, weight: uint32(i)})
		return true
	})
	flat := slices.Clone(all)
	measure(b, "limit=flat", func(i int) bool {
		flat = slices.Clone(flat)
		flat[i*stride%n] = &limitAddress{address: all[i*stride%n].address, weight: uint32(i)}
		return true
	})
}
