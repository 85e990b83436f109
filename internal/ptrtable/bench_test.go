// SPDX-License-Identifier: Apache-2.0

package ptrtable_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/ptrtable"
)

type name struct{ namespace, name string }

type item struct {
	name name
	_    [8]int
}

// index is one of the compared structures.
type index struct {
	get func(name) *item
	set func(*item)
}

var indexes = []struct {
	name string
	make func() index
}{
	{"Table", func() index {
		t := ptrtable.New(
			func(i *item, _ uint16, n name) bool { return i.name == n },
			func(i *item, _ uint16) name { return i.name },
		)
		return index{func(n name) *item {
			i, _ := t.Get(n)
			return i
		}, func(i *item) { t.Set(i.name, i, 0) }}
	}},
	{"Live", func() index {
		m := &pmap.Live[name, *item]{}
		return index{func(n name) *item {
			i, _ := m.Get(n)
			return i
		}, func(i *item) { m.Set(i.name, i) }}
	}},
	{"SyncMap", func() index {
		m := &sync.Map{}
		return index{func(n name) *item {
			i, _ := m.Load(n)
			return i.(*item)
		}, func(i *item) { m.Store(i.name, i) }}
	}},
	{"Limit", func() index {
		m := map[name]*item{}
		return index{func(n name) *item { return m[n] }, func(i *item) { m[i.name] = i }}
	}},
}

func bench(b *testing.B, f func(index, *item)) {
	b.Helper()
	const n, stride = 100_000, 7919
	items := make([]*item, n)
	for i := range items {
		items[i] = &item{name: name{fmt.Sprintf("ns-%02d", i%100), fmt.Sprintf("entry-%06d", i)}}
	}
	for _, c := range indexes {
		b.Run(c.name, func(b *testing.B) {
			before := liveHeap()
			x := c.make()
			for _, i := range items {
				x.set(i)
			}
			heap := liveHeap() - before
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + stride) % n
				f(x, items[i])
			}
			b.ReportMetric(float64(heap)/n, "heap-B/item")
			runtime.KeepAlive(x)
		})
	}
}

func BenchmarkGet(b *testing.B) {
	bench(b, func(x index, i *item) {
		if x.get(i.name) != i {
			b.Fatal("not found")
		}
	})
}

func BenchmarkSet(b *testing.B) { bench(b, func(x index, i *item) { x.set(i) }) }

func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
