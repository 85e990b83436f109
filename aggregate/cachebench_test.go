// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// The benchmarks that end in "Limit" do the same on a single store, or do only
// the unavoidable work; the targets are ratios to them.

const (
	benchMembers = 3
	benchStride  = 7919
)

func benchEntry(i int) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry,
			Name:             fmt.Sprintf("entry-%06d", i),
			Namespace:        fmt.Sprintf("ns-%02d", i%100),
		},
		Spec: &networking.ServiceEntry{Hosts: []string{fmt.Sprintf("host-%d.example.com", i)}},
	}
}

func must(b *testing.B, err error) { //nolint:thelper // a helper would cost as much as what it measures
	if err != nil {
		b.Fatal(err)
	}
}

// benchCaches returns caches with n objects between them.
func benchCaches(b *testing.B, members, n int) []*memory.Controller {
	b.Helper()
	caches := make([]*memory.Controller, members)
	for i := range caches {
		caches[i] = memory.NewController(memory.Make(istio.Schemas(), memory.Options{SkipValidation: true}))
	}
	for i := range n {
		_, err := caches[i*members/n].Create(benchEntry(i))
		must(b, err)
	}
	return caches
}

func aggregateOf(caches []*memory.Controller) *aggregate.Cache {
	list := make([]configstore.ConfigStoreCache, len(caches))
	for i, c := range caches {
		list[i] = c
	}
	return aggregate.MakeWriteableCache(list, caches[0])
}

func sizes(b *testing.B, f func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			f(b, n)
		})
	}
}

func benchGet(b *testing.B, store configstore.ConfigStore, n int, missing bool) {
	b.Helper()
	keys := make([]configstore.Meta, n)
	for i := range keys {
		keys[i] = benchEntry(i).Meta
		if missing {
			keys[i].Name += "-absent"
		}
	}
	i := 0
	for b.Loop() {
		i = (i + benchStride) % n
		if got := store.Get(istio.ServiceEntry, keys[i].Name, keys[i].Namespace); (got == nil) != missing {
			b.Fatalf("Get(%s) = %v", keys[i].Name, got)
		}
	}
}

func BenchmarkCacheGet(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchGet(b, aggregateOf(benchCaches(b, benchMembers, n)), n, false)
	})
}

func BenchmarkCacheGetLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchGet(b, benchCaches(b, 1, n)[0], n, false)
	})
}

func BenchmarkCacheGetMiss(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchGet(b, aggregateOf(benchCaches(b, benchMembers, n)), n, true)
	})
}

func BenchmarkCacheGetMissLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchGet(b, benchCaches(b, 1, n)[0], n, true)
	})
}

func BenchmarkCacheList(b *testing.B) {
	for _, namespace := range []string{configstore.NamespaceAll, "ns-07"} {
		b.Run("namespace="+namespace, func(b *testing.B) {
			sizes(b, func(b *testing.B, n int) {
				b.Helper()
				c := aggregateOf(benchCaches(b, benchMembers, n))
				c.List(istio.ServiceEntry, namespace)
				for b.Loop() {
					c.List(istio.ServiceEntry, namespace)
				}
			})
		})
	}
}

// BenchmarkCacheListChanged lists after one object has changed.
func BenchmarkCacheListChanged(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		caches := benchCaches(b, benchMembers, n)
		c := aggregateOf(caches)
		c.List(istio.ServiceEntry, configstore.NamespaceAll)
		update := toggled(benchEntry(n / 2))
		i := 0
		for b.Loop() {
			b.StopTimer()
			i++
			_, err := caches[1].Update(update[i%2])
			must(b, err)
			c.Get(istio.ServiceEntry, "absent", "absent")
			b.StartTimer()
			c.List(istio.ServiceEntry, configstore.NamespaceAll)
		}
	})
}

func BenchmarkCacheListChangedLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		list := make([]*configstore.Config, n)
		for i := range list {
			c := benchEntry(i)
			list[i] = &c
		}
		for b.Loop() {
			list = slices.Clone(list)
		}
	})
}

func toggled(c configstore.Config) [2]configstore.Config {
	d := c
	d.Labels = map[string]string{"version": "2"}
	return [2]configstore.Config{d, c}
}

// BenchmarkCacheUpdate updates through a member, with one handler, and delivers.
func BenchmarkCacheUpdate(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		caches := benchCaches(b, benchMembers, n)
		c := aggregateOf(caches)
		benchUpdate(b, caches[0], c.Drain, c, n)
	})
}

func BenchmarkCacheUpdateLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		c := benchCaches(b, 1, n)[0]
		benchUpdate(b, c, c.Drain, c, n)
	})
}

func benchUpdate(b *testing.B, store configstore.ConfigStore, drain func(), cache configstore.ConfigStoreCache, n int) {
	b.Helper()
	events := 0
	cache.RegisterEventHandler(istio.ServiceEntry, func(_, _ configstore.Config, _ configstore.Event) { events++ })
	drain()
	updates := make([][2]configstore.Config, 0, n/benchMembers)
	for i := range n / benchMembers {
		updates = append(updates, toggled(benchEntry(i)))
	}
	i, events0 := 0, events
	for b.Loop() {
		at := (i * benchStride) % len(updates)
		_, err := store.Update(updates[at][(i/len(updates))%2])
		must(b, err)
		drain()
		i++
	}
	if events-events0 < i/2 {
		b.Fatalf("%d events for %d updates", events-events0, i)
	}
}

// BenchmarkCacheMemory reports what an object costs beyond its own store.
func BenchmarkCacheMemory(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		caches := benchCaches(b, benchMembers, n)
		for _, c := range caches {
			c.Drain()
		}
		for b.Loop() {
			before := liveHeap()
			c := aggregateOf(caches)
			for _, m := range caches {
				m.Drain()
			}
			b.ReportMetric(float64(liveHeap()-before)/float64(n), "heap-B/item")
			runtime.KeepAlive(c)
		}
	})
}

func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
