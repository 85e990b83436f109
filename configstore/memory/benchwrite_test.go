// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// BenchmarkCreate creates the objects of a store of n, over and over.
func BenchmarkCreate(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		configs := benchConfigs(n)
		s, i := memory.Make(benchSchemas()), 0
		for b.Loop() {
			if i == n {
				b.StopTimer()
				s, i = memory.Make(benchSchemas()), 0
				b.StartTimer()
			}
			_, err := s.Create(configs[i])
			must(b, err)
			i++
		}
	})
}

// BenchmarkCreateOne creates and deletes one object more in a store of n; the
// figure is that of both.
func BenchmarkCreateOne(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, _ := benchStore(b, n)
		more := benchConfigs(n + 1)[n]
		for b.Loop() {
			_, err := s.Create(more)
			must(b, err)
			must(b, s.Delete(benchKind, more.Name, more.Namespace, nil))
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		at, round := stride{n: n}, 0
		labels := [2]map[string]string{{"version": "1"}, {"version": "2"}}
		for b.Loop() {
			i := at.next()
			if i == 0 {
				round++
			}
			c := configs[i]
			c.Labels = labels[round%2]
			_, err := s.Update(c)
			must(b, err)
		}
	})
}

// BenchmarkUpdateSpec changes the spec, which has to be compared.
func BenchmarkUpdateSpec(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		at, round := stride{n: n}, 0
		specs := [2]*networking.ServiceEntry{{Hosts: []string{"one.example.com"}}, {Hosts: []string{"two.example.com"}}}
		for b.Loop() {
			i := at.next()
			if i == 0 {
				round++
			}
			c := configs[i]
			c.Spec = specs[round%2]
			_, err := s.Update(c)
			must(b, err)
		}
	})
}

// BenchmarkUpdateListed is Update in a store whose lists are kept up to date for
// a reader: of all namespaces, every thousand changes.
func BenchmarkUpdateListed(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		at, round, count := stride{n: n}, 0, 0
		labels := [2]map[string]string{{"version": "1"}, {"version": "2"}}
		for b.Loop() {
			i := at.next()
			if i == 0 {
				round++
			}
			c := configs[i]
			c.Labels = labels[round%2]
			_, err := s.Update(c)
			must(b, err)
			if count++; count%1000 == 0 {
				s.List(benchKind, configstore.NamespaceAll)
			}
		}
	})
}

// BenchmarkApply is Update in batches of 100; the figure is that of one change.
func BenchmarkApply(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		s, configs := benchStore(b, n)
		at, round := stride{n: n}, 0
		labels := [2]map[string]string{{"version": "1"}, {"version": "2"}}
		batch := make([]configstore.Mutation, 0, 100)
		for b.Loop() {
			i := at.next()
			if i == 0 {
				round++
			}
			c := configs[i]
			c.Labels = labels[round%2]
			batch = append(batch, configstore.Mutation{Op: configstore.OpUpdate, Config: c})
			if len(batch) == cap(batch) {
				_, err := s.Apply(batch...)
				must(b, err)
				batch = batch[:0]
			}
		}
	})
}

// BenchmarkWriteLimit writes a new object to a Go map under a lock.
func BenchmarkWriteLimit(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		configs := benchConfigs(n)
		m := limitMap(configs)
		var mu sync.RWMutex
		at := stride{n: n}
		for b.Loop() {
			c := configs[at.next()]
			mu.Lock()
			m[limitKey{c.Namespace, c.Name}] = &c
			mu.Unlock()
		}
	})
}
