// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func BenchmarkGet(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		at := stride{n: n}
		for b.Loop() {
			c := &configs[at.next()]
			if s.Get(benchKind, c.Name, c.Namespace) == nil {
				b.Fatal("not found")
			}
		}
	})
}

// BenchmarkGetLimit reads a Go map under a read lock.
func BenchmarkGetLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		configs := benchConfigs(n)
		m := limitMap(configs)
		var mu sync.RWMutex
		at := stride{n: n}
		for b.Loop() {
			c := &configs[at.next()]
			mu.RLock()
			found := m[limitKey{c.Namespace, c.Name}]
			mu.RUnlock()
			if found == nil {
				b.Fatal("not found")
			}
		}
	})
}

// writing runs f concurrently with a writer at full speed, and reports the writer's rate.
func writing(b *testing.B, s *memory.Store, configs []configstore.Config, f func()) {
	b.Helper()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		at, round, writes := stride{n: len(configs)}, 0, 0
		labels := [2]map[string]string{{"version": "1"}, {"version": "2"}}
		for {
			select {
			case <-stop:
				done <- writes
				return
			default:
			}
			i := at.next()
			if i == 0 {
				round++
			}
			c := configs[i]
			c.Labels = labels[round%2]
			if _, err := s.Update(c); err == nil {
				writes++
			}
		}
	}()
	f()
	close(stop)
	b.ReportMetric(float64(<-done)/b.Elapsed().Seconds(), "writes/s")
}

func BenchmarkGetBesideWriter(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		writing(b, s, configs, func() {
			at := stride{n: n}
			for b.Loop() {
				c := &configs[at.next()]
				if s.Get(benchKind, c.Name, c.Namespace) == nil {
					b.Fatal("not found")
				}
			}
		})
	})
}

// BenchmarkSnapshotBesideWriter takes a snapshot and reads ten objects of it.
func BenchmarkSnapshotBesideWriter(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		writing(b, s, configs, func() {
			at := stride{n: n}
			for b.Loop() {
				snap := s.Snapshot()
				for range 10 {
					c := &configs[at.next()]
					if snap.Get(benchKind, c.Name, c.Namespace) == nil {
						b.Fatal("not found")
					}
				}
			}
		})
	})
}

func benchList(b *testing.B, namespace string) {
	b.Helper()
	b.Run("unchanged", func(b *testing.B) {
		sizes(b, func(b *testing.B, n int) {
			b.Helper()
			s, _ := benchStore(b, n)
			s.List(benchKind, namespace)
			for b.Loop() {
				if len(s.List(benchKind, namespace)) == 0 {
					b.Fatal("empty")
				}
			}
		})
	})
	b.Run("changed", func(b *testing.B) {
		sizes(b, func(b *testing.B, n int) {
			b.Helper()
			s, configs := benchStore(b, n)
			c, i := relabelled(configs[0]), 0
			s.List(benchKind, namespace)
			for b.Loop() {
				b.StopTimer()
				_, err := s.Update(c[i%2])
				must(b, err)
				i++
				b.StartTimer()
				if len(s.List(benchKind, namespace)) == 0 {
					b.Fatal("empty")
				}
			}
		})
	})
	b.Run("limit", func(b *testing.B) {
		sizes(b, func(b *testing.B, n int) {
			b.Helper()
			s, configs := benchStore(b, n)
			c, i := relabelled(configs[0]), 0
			items := s.List(benchKind, namespace)
			for b.Loop() {
				b.StopTimer()
				_, err := s.Update(c[i%2])
				must(b, err)
				i++
				b.StartTimer()
				if len(slices.Clone(items)) == 0 {
					b.Fatal("empty")
				}
			}
		})
	})
}

func BenchmarkListNamespace(b *testing.B) { benchList(b, "ns-00") }

func BenchmarkListAll(b *testing.B) { benchList(b, configstore.NamespaceAll) }

// BenchmarkIterate touches every object; the figure is that of all n.
func BenchmarkIterate(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, _ := benchStore(b, n)
		snap, touched := s.Snapshot(), 0
		snap.List(benchKind, configstore.NamespaceAll)
		for b.Loop() {
			for c := range configstore.Select(snap, benchKind, configstore.NamespaceAll, nil) {
				touched += len(c.Name)
			}
		}
	})
}

func BenchmarkIterateLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, _ := benchStore(b, n)
		items, touched := s.List(benchKind, configstore.NamespaceAll), 0
		for b.Loop() {
			for _, c := range items {
				touched += len(c.Name)
			}
		}
	})
}
