// SPDX-License-Identifier: Apache-2.0

package pmap_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/internal/pmap"
)

type key struct{ namespace, name string }

func keys(n int) []key {
	out := make([]key, n)
	for i := range out {
		out[i] = key{fmt.Sprintf("ns-%02d", i%100), fmt.Sprintf("entry-%06d", i)}
	}
	return out
}

// sizes runs f with n keys; f is called with the position of the next one, in an
// order that is not that of memory.
func sizes(b *testing.B, setup func(keys []key) func(k key)) {
	b.Helper()
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			all, i := keys(n), 0
			f := setup(all)
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % n
				f(all[i])
			}
		})
	}
}

func live(keys []key) *pmap.Live[key, int] {
	l := &pmap.Live[key, int]{}
	for i, k := range keys {
		l.Set(k, i)
	}
	return l
}

func BenchmarkGet(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		m := live(keys).Snapshot()
		return func(k key) { m.Get(k) }
	})
}

func BenchmarkGetLimit(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		m := goMap(keys)
		return func(k key) { sink = m[k] }
	})
}

func BenchmarkSet(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		m := live(keys).Snapshot()
		return func(k key) { m = m.Set(k, 1) }
	})
}

func BenchmarkLiveSet(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		l := live(keys)
		return func(k key) { l.Set(k, 1) }
	})
}

// BenchmarkLiveSetSnapshot changes a key after each snapshot.
func BenchmarkLiveSetSnapshot(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		l := live(keys)
		return func(k key) {
			l.Set(k, 1)
			l.Snapshot()
		}
	})
}

// BenchmarkSetLimit puts a new 40 B value, as Set does, into a Go map.
func BenchmarkSetLimit(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		m := map[key]*pmap.Entry[key, int]{}
		for _, k := range keys {
			m[k] = &pmap.Entry[key, int]{Key: k}
		}
		return func(k key) { m[k] = &pmap.Entry[key, int]{Key: k} }
	})
}

func BenchmarkDeleteSet(b *testing.B) {
	sizes(b, func(keys []key) func(key) {
		m := live(keys).Snapshot()
		return func(k key) { m = m.Delete(k).Set(k, 1) }
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			all := keys(n)
			b.ReportAllocs()
			for b.Loop() {
				live(all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}

// BenchmarkBuildAtOnce is BenchmarkBuild by FromEntries.
func BenchmarkBuildAtOnce(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			all := keys(n)
			b.ReportAllocs()
			for b.Loop() {
				entries := make([]*pmap.Entry[key, int], n)
				for i, k := range all {
					entries[i] = &pmap.Entry[key, int]{Key: k, Value: i}
				}
				pmap.FromEntries(entries)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}

func goMap(keys []key) map[key]int {
	m := map[key]int{}
	for i, k := range keys {
		m[k] = i
	}
	return m
}

var sink int
