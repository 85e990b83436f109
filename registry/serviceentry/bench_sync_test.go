// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"runtime"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
)

// BenchmarkInitialSync makes a registry of a store with n ServiceEntries.
// heap-B/entry is what the registry and the endpoint index keep for each, without
// the config.
func BenchmarkInitialSync(b *testing.B) {
	for _, n := range loads {
		b.Run(sizeName(n), func(b *testing.B) {
			entries := standardEntries(n)
			b.Run("registry", func(b *testing.B) { benchmarkSync(b, entries) })
			b.Run("limit", func(b *testing.B) { benchmarkSyncLimit(b, entries) })
		})
	}
}

func benchmarkSync(b *testing.B, entries []configstore.Config) {
	b.Helper()
	var total meter
	for b.Loop() {
		b.StopTimer()
		store := newStore()
		fill(b, store, entries)
		before := liveHeap()
		b.StartTimer()
		total.start()
		p := newPlantOn(store, true)
		total.stop()
		b.StopTimer()
		if p.updater.endpoints != len(entries) || len(p.registry.Services()) != len(entries) {
			b.Fatalf("%d services, endpoints of %d", len(p.registry.Services()), p.updater.endpoints)
		}
		total.heap = liveHeap() - before
		runtime.KeepAlive(p)
		b.StartTimer()
	}
	total.report(b, len(entries))
}

func benchmarkSyncLimit(b *testing.B, entries []configstore.Config) {
	b.Helper()
	var total meter
	for b.Loop() {
		b.StopTimer()
		before := liveHeap()
		b.StartTimer()
		total.start()
		r := newLimitRegistry()
		for i := range entries {
			spec, _ := entries[i].Spec.(*networking.ServiceEntry)
			r.put(spec)
		}
		total.stop()
		b.StopTimer()
		total.heap = liveHeap() - before
		runtime.KeepAlive(r)
		b.StartTimer()
	}
	total.report(b, len(entries))
}

// BenchmarkCreateMany creates n ServiceEntries in a row, each with all its
// effects. The cost of the config store is included.
func BenchmarkCreateMany(b *testing.B) {
	for _, n := range loads {
		b.Run(sizeName(n), func(b *testing.B) {
			entries := standardEntries(n)
			runtime.GC()
			var total meter
			for b.Loop() {
				total.start()
				p := newPlant(true)
				for _, e := range entries {
					p.create(e)
				}
				total.stop()
				if p.updater.endpoints != n {
					b.Fatalf("%d updates of endpoints", p.updater.endpoints)
				}
			}
			total.report(b, n)
		})
	}
}

// meter adds up what runs took.
type meter struct {
	began       time.Time
	cpu         time.Duration
	wall, spent time.Duration
	heap        float64
}

func (m *meter) start() { m.began, m.cpu = time.Now(), cputime.Used() }

func (m *meter) stop() {
	m.wall += time.Since(m.began)
	m.spent += cputime.Used() - m.cpu
}

func (m *meter) report(b *testing.B, n int) {
	b.Helper()
	items := float64(b.N) * float64(n)
	b.ReportMetric(float64(m.wall.Microseconds())/items, "us/entry")
	b.ReportMetric(float64(m.spent.Microseconds())/items, "cpu-us/entry")
	if m.heap != 0 {
		b.ReportMetric(m.heap/float64(n), "heap-B/entry")
	}
}
