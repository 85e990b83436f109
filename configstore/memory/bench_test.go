// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// The benchmarks are named after the operation; their counterparts with the suffix "Limit" do only
// the unavoidable work, so that one run gives the ratio. Keys are visited with a stride that makes
// large stores miss the cache, as in production.

var benchKind = configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "ServiceEntry"}

const (
	benchNamespaces = 100
	benchStride     = 7919
)

// benchSchemas has the 15 kinds of a mesh in number, so that finding one has a realistic cost.
func benchSchemas() configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	for i := range 14 {
		kind := benchKind
		kind.Kind = fmt.Sprintf("Other%02d", i)
		b.MustAdd(configstore.Schema{GroupVersionKind: kind, Spec: &networking.Sidecar{}})
	}
	return b.MustAdd(configstore.Schema{
		GroupVersionKind: benchKind, Aliases: []string{"v1alpha3", "v1beta1"}, Spec: &networking.ServiceEntry{},
	}).Build()
}

func benchConfigs(n int) []configstore.Config {
	out := make([]configstore.Config, n)
	for i := range out {
		out[i] = configstore.Config{
			Meta: configstore.Meta{
				GroupVersionKind: benchKind,
				Name:             fmt.Sprintf("entry-%06d", i),
				Namespace:        fmt.Sprintf("ns-%02d", i%benchNamespaces),
			},
			Spec: &networking.ServiceEntry{Hosts: []string{fmt.Sprintf("host-%d.example.com", i)}},
		}
	}
	return out
}

// benchStore returns a store with n objects, and the objects.
func benchStore(b *testing.B, n int) (*memory.Store, []configstore.Config) {
	b.Helper()
	s := memory.Make(benchSchemas())
	configs := benchConfigs(n)
	for _, c := range configs {
		if _, err := s.Create(c); err != nil {
			b.Fatal(err)
		}
	}
	return s, configs
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

// stride visits 0..n-1 in an order that is not that of memory.
type stride struct{ i, n int }

func (s *stride) next() int {
	s.i = (s.i + benchStride) % s.n
	return s.i
}

type limitKey struct{ namespace, name string }

func limitMap(configs []configstore.Config) map[limitKey]*configstore.Config {
	m := map[limitKey]*configstore.Config{}
	for _, c := range configs {
		m[limitKey{c.Namespace, c.Name}] = &c
	}
	return m
}

// must is no helper: that would cost as much as a write.
func must(b *testing.B, err error) { //nolint:thelper // see above
	if err != nil {
		b.Fatal(err)
	}
}

func relabelled(c configstore.Config) [2]configstore.Config {
	d := c
	d.Labels = map[string]string{"version": "2"}
	return [2]configstore.Config{d, c}
}

// BenchmarkOverhead reports the memory of a store beyond that of the objects, per
// object: before anything was listed, and after.
func BenchmarkOverhead(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		configs := benchConfigs(n)
		const size = 240 // a Config on the heap
		for b.Loop() {
			before := heap()
			s := memory.Make(benchSchemas())
			for i := range configs {
				_, err := s.Create(configs[i])
				must(b, err)
			}
			b.ReportMetric(float64(heap()-before)/float64(n)-size, "B/object")
			s.List(benchKind, configstore.NamespaceAll)
			for i := range benchNamespaces {
				s.List(benchKind, fmt.Sprintf("ns-%02d", i))
			}
			b.ReportMetric(float64(heap()-before)/float64(n)-size, "B/object-listed")
			runtime.KeepAlive(s)
		}
		runtime.KeepAlive(configs)
	})
}

// heap returns the live heap.
func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
