// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// benchList returns n endpoints as a registry makes them: every endpoint an
// object of its own, the attributes shared, by several lists too.
func benchList(n int) []*registry.Endpoint { return benchListWith(n, benchAttributes) }

var benchAttributes = ep("", account("spiffe://cluster.local/ns/default/sa/a")).Shared

func benchListWith(n int, attributes *registry.EndpointAttributes) []*registry.Endpoint {
	out := make([]*registry.Endpoint, n)
	for i := range out {
		out[i] = ep(address(i))
		out[i].Shared = attributes
	}
	slices.SortFunc(out, registry.CompareEndpoints)
	return out
}

// benchIndex returns an index with a service that has the list in a shard, and
// others of the same size in more shards.
func benchIndex(list []*registry.Endpoint, shards int) *xdsupdate.EndpointIndex {
	index := xdsupdate.NewEndpointIndex()
	for i := range shards {
		index.UpdateServiceEndpoints(shardOf(strconv.Itoa(i)), host, ns, list)
		list = benchList(len(list))
	}
	return index
}

// sizes yields the sizes of a service, with the names of their benchmarks.
func sizes() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, n := range []int{10, 100, 1000, 10_000} {
			if !yield(fmt.Sprintf("n=%d", n), n) {
				return
			}
		}
	}
}

// BenchmarkListUnchanged gives a list of different but equal endpoints.
func BenchmarkListUnchanged(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			lists := [2][]*registry.Endpoint{benchList(n), benchList(n)}
			index, i := benchIndex(lists[0], 1), 0
			for b.Loop() {
				i = 1 - i
				if index.UpdateServiceEndpoints(shardOf("0"), host, ns, lists[i]) != no {
					b.Fatal("a push")
				}
			}
		})
	}
}

// BenchmarkListUnchangedNotShared is the same with attributes of its own for each
// list, of which the labels have to be compared.
func BenchmarkListUnchangedNotShared(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var lists [2][]*registry.Endpoint
			for i := range lists {
				lists[i] = benchListWith(n, ep("", account("a")).Shared)
			}
			index, i := benchIndex(lists[0], 1), 0
			for b.Loop() {
				i = 1 - i
				if index.UpdateServiceEndpoints(shardOf("0"), host, ns, lists[i]) != no {
					b.Fatal("a push")
				}
			}
		})
	}
}

// BenchmarkListIdentical gives the same list again.
func BenchmarkListIdentical(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			list := benchList(n)
			index := benchIndex(list, 1)
			for b.Loop() {
				if index.UpdateServiceEndpoints(shardOf("0"), host, ns, list) != no {
					b.Fatal("a push")
				}
			}
		})
	}
}

// BenchmarkListOneChanged gives a new list in which one endpoint is another one;
// the others are the very same, as registries make it.
func BenchmarkListOneChanged(b *testing.B) {
	for _, shards := range []int{1, 10} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			for name, n := range sizes() {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					lists := [2][]*registry.Endpoint{benchList(n)}
					lists[1] = slices.Clone(lists[0])
					changed := *lists[0][n/2]
					changed.HealthStatus = registry.Draining
					lists[1][n/2] = &changed
					index, i := benchIndex(lists[0], shards), 0
					for b.Loop() {
						i = 1 - i
						if index.UpdateServiceEndpoints(shardOf("0"), host, ns, lists[i]) != incremental {
							b.Fatal("no push")
						}
					}
				})
			}
		})
	}
}

// BenchmarkListOneChangedAllNew is the same with all endpoints new objects.
func BenchmarkListOneChangedAllNew(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			lists := [2][]*registry.Endpoint{benchList(n), benchList(n)}
			lists[1][n/2].HealthStatus = registry.Draining
			index, i := benchIndex(lists[0], 1), 0
			for b.Loop() {
				i = 1 - i
				if index.UpdateServiceEndpoints(shardOf("0"), host, ns, lists[i]) != incremental {
					b.Fatal("no push")
				}
			}
		})
	}
}

// BenchmarkDelta changes one endpoint by a delta.
func BenchmarkDelta(b *testing.B) {
	for _, shards := range []int{1, 10} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			for name, n := range sizes() {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					list := benchList(n)
					index, i := benchIndex(slices.Clone(list), shards), 0
					changes := make([]xdsupdate.EndpointChange, 1)
					for b.Loop() {
						i = (i + 7919) % n
						next := *list[i]
						next.HealthStatus = registry.Draining - next.HealthStatus
						changes[0] = xdsupdate.EndpointChange{Old: list[i], New: &next}
						if index.UpdateEndpoints(shardOf("0"), host, ns, changes) != incremental {
							b.Fatal("no push")
						}
						list[i] = &next
					}
				})
			}
		})
	}
}

// BenchmarkDeltaAddRemove adds an endpoint and removes it again; the figure is
// for both.
func BenchmarkDeltaAddRemove(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			index, added := benchIndex(benchList(n), 1), ep("10.0.0.3x", account("other"))
			add := []xdsupdate.EndpointChange{{New: added}}
			remove := []xdsupdate.EndpointChange{{Old: added}}
			for b.Loop() {
				index.UpdateEndpoints(shardOf("0"), host, ns, add)
				index.UpdateEndpoints(shardOf("0"), host, ns, remove)
			}
		})
	}
}

// BenchmarkDeltaMany changes a tenth of the endpoints in one call; the figure is
// for the call.
func BenchmarkDeltaMany(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			list := benchList(n)
			index := benchIndex(slices.Clone(list), 1)
			changes := make([]xdsupdate.EndpointChange, n/10)
			for b.Loop() {
				for i := range changes {
					next := *list[i*10]
					next.HealthStatus = registry.Draining - next.HealthStatus
					changes[i] = xdsupdate.EndpointChange{Old: list[i*10], New: &next}
					list[i*10] = &next
				}
				if index.UpdateEndpoints(shardOf("0"), host, ns, changes) != incremental {
					b.Fatal("no push")
				}
			}
		})
	}
}

// BenchmarkLimitPointerDiff compares two lists by pointer.
func BenchmarkLimitPointerDiff(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			a := benchList(n)
			c, equal := slices.Clone(a), 0
			for b.Loop() {
				for i, e := range a {
					if e == c[i] {
						equal++
					}
				}
			}
		})
	}
}

// limitEndpoint is an endpoint of 56 bytes with interned attributes, all of
// which a comparison looks at.
type limitEndpoint struct {
	address      string
	portName     string
	attributes   *registry.EndpointAttributes
	port, target uint32
	_, _         uint32 // health, location
}

// BenchmarkLimitValueDiff compares two lists by value, in the same order.
func BenchmarkLimitValueDiff(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			attributes := &registry.EndpointAttributes{}
			var lists [2][]limitEndpoint
			for k := range lists {
				for i := range n {
					lists[k] = append(lists[k], limitEndpoint{
						address: address(i), portName: "http", attributes: attributes, port: 80, target: 8080,
					})
				}
			}
			equal := 0
			for b.Loop() {
				for i := range lists[0] {
					if lists[0][i] == lists[1][i] {
						equal++
					}
				}
			}
		})
	}
}

// BenchmarkLimitValueDiffByPointer is the same for endpoints that are objects of
// their own, as registries have them.
func BenchmarkLimitValueDiffByPointer(b *testing.B) {
	for name, n := range sizes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			attributes := &registry.EndpointAttributes{}
			var lists [2][]*limitEndpoint
			for k := range lists {
				for i := range n {
					lists[k] = append(lists[k], &limitEndpoint{
						address: address(i), portName: "http", attributes: attributes, port: 80, target: 8080,
					})
				}
			}
			equal := 0
			for b.Loop() {
				for i, e := range lists[0] {
					if *e == *lists[1][i] {
						equal++
					}
				}
			}
		})
	}
}

// BenchmarkParallelServices updates services with one endpoint from several
// goroutines.
func BenchmarkParallelServices(b *testing.B) {
	b.ReportAllocs()
	index := xdsupdate.NewEndpointIndex()
	var id atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		name, i := strconv.Itoa(int(id.Inc())), 0
		lists := [2][]*registry.Endpoint{eps(ep("1.1.1.1")), eps(ep("1.1.1.1", health(registry.Draining)))}
		for pb.Next() {
			i = 1 - i
			index.UpdateServiceEndpoints(shardOf("0"), registry.Hostname(name), ns, lists[i])
		}
	})
}

// BenchmarkService looks services up among many.
func BenchmarkService(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			index, names := xdsupdate.NewEndpointIndex(), make([]string, n)
			list := eps(ep("1.1.1.1"))
			for i := range names {
				names[i] = "service-" + strconv.Itoa(i) + ".example.com"
				index.UpdateServiceEndpoints(shardOf("0"), registry.Hostname(names[i]), ns, list)
			}
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				if index.Service(registry.Hostname(names[i]), ns) == nil {
					b.Fatal("missing")
				}
			}
		})
	}
}

// BenchmarkMemory reports the live bytes of an index: for each service with one
// endpoint, and for each endpoint of a large service, in its final form and after
// every endpoint was changed by a delta. The endpoints and their lists count.
func BenchmarkMemory(b *testing.B) {
	b.Run("services", func(b *testing.B) {
		const n = 20_000
		names := make([]string, n)
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		lists := make([][]*registry.Endpoint, n)
		for i := range lists {
			lists[i] = benchList(1)
		}
		for b.Loop() {
			index := xdsupdate.NewEndpointIndex()
			before := heap()
			for i, name := range names {
				index.UpdateServiceEndpoints(shardOf("0"), registry.Hostname(name), ns, lists[i])
			}
			b.ReportMetric(float64(heap()-before)/n, "B/service")
			runtime.KeepAlive(index)
		}
	})
	b.Run("endpoints", func(b *testing.B) {
		const n = 100_000
		for b.Loop() {
			index := xdsupdate.NewEndpointIndex()
			before := heap()
			index.UpdateServiceEndpoints(shardOf("0"), host, ns, benchList(n))
			b.ReportMetric(float64(heap()-before)/n, "B/endpoint")
			changes := make([]xdsupdate.EndpointChange, 1)
			for e := range index.Service(host, ns).All() {
				next := *e
				next.HealthStatus = registry.Draining
				changes[0] = xdsupdate.EndpointChange{Old: e, New: &next}
				index.UpdateEndpoints(shardOf("0"), host, ns, changes)
			}
			b.ReportMetric(float64(heap()-before)/n, "B/endpoint-after-deltas")
			runtime.KeepAlive(index)
		}
	})
}

func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
