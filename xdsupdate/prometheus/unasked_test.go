// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// watched is a server with all services for operators: CSDS, debug pages and metrics.
type watched struct {
	*fixture
	pages   http.Handler
	metrics *client.Registry
}

func serveWatched(tb testing.TB, hosts ...string) *watched {
	tb.Helper()
	counted, store := prometheus.New(), configs.NewController(configs.Make(istio.Schemas()))
	w := &watched{}
	w.fixture = serveWith(tb, ads.Options{Observer: counted}, func(s *ads.Server, on grpc.ServiceRegistrar) {
		csds.New(s, csds.Options{Authorize: func(context.Context) error { return nil }}).Register(on)
	}, hosts...)
	sources := []configstore.Source{configstore.SourceOf("configs", store)}
	w.pages = debug.New(debug.Options{Configs: store, Services: w.services, Server: w.Server, Sources: sources})
	w.metrics = registered(tb, counted, prometheus.NewServerCollector(w.Server), prometheus.NewConfigCollector(store),
		prometheus.NewSourceCollector(sources...))
	return w
}

// bareAndWatched are two servers of the same services, each with a client.
func bareAndWatched(tb testing.TB) []*fixture {
	tb.Helper()
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprint("h", i))
	}
	both := []*fixture{serve(tb, ads.Options{}, hosts...), serveWatched(tb, hosts...).fixture}
	for _, f := range both {
		f.flush()
		f.proxy = f.client(xdstest.ClientOptions{Delta: true, Node: node("proxy")}, envoy.ClusterType)
		f.next(f.proxy)
		if err := f.proxy.Subscribe(envoy.LoadAssignmentType, "outbound|80||h0"); err != nil {
			tb.Fatal(err)
		}
		f.next(f.proxy)
	}
	return both
}

// applied waits until all clients have accepted everything.
func (f *fixture) applied() {
	if err := f.WaitApplied(f.t.Context(), nil); err != nil {
		f.t.Fatal(err)
	}
}

// operations are the usual operations of a server. Each ends when the clients have accepted it.
func operations() map[string]func(f *fixture, n int) {
	return map[string]func(f *fixture, n int){
		"endpoint": func(f *fixture, n int) {
			f.EDSUpdate(xdsupdate.ShardKey{Cluster: "c", Provider: "p"}, "h0", "shop", []*registry.Endpoint{{
				Addresses: []string{fmt.Sprintf("10.1.%d.%d", n>>8&255, n&255)}, EndpointPort: 80, ServicePortName: "grpc",
			}})
			f.next(f.proxy)
		},
		"full": func(f *fixture, _ int) { // the cluster is another one
			service := *f.services.GetService("h1")
			if service.Resolution++; service.Resolution > registry.DNSLB {
				service.Resolution = registry.ClientSideLB
			}
			if err := f.services.SetService(&service); err != nil {
				f.t.Fatal(err)
			}
			f.next(f.proxy)
		},
		"connect": func(f *fixture, _ int) {
			c := xdstest.NewClient(f.shared(), xdstest.ClientOptions{Delta: true, Node: node("guest"), NoHistory: true})
			defer c.Close()
			if err := c.Connect(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			if err := c.Subscribe(envoy.ClusterType); err != nil {
				f.t.Fatal(err)
			}
			if err := c.Await(f.t.Context(), func(s xdstest.State) bool { return len(s.Resources(envoy.ClusterType)) >= 100 }); err != nil {
				f.t.Fatal(err)
			}
		},
	}
}

// shared returns one connection for all that ask for it.
func (f *fixture) shared() *grpc.ClientConn {
	if f.conn == nil {
		f.conn = f.dial()
	}
	return f.conn
}

// allocated returns how many objects the process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// TestUnasked: services for operators that are not in use cost a push and a connect no allocations.
// Because the process occasionally makes other allocations, the minimum of several rounds is used.
func TestUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := bareAndWatched(t)
		for name, do := range operations() {
			least := make([]uint64, len(both))
			const rounds, times = 20, 20
			for round := range rounds {
				for i, f := range both {
					synctest.Wait()
					before := allocated()
					for n := range times {
						do(f, round*times+n)
						synctest.Wait() // all of it is over
					}
					if got := (allocated() - before) / times; round == 0 || got < least[i] {
						least[i] = got
					}
				}
			}
			t.Logf("%s: %d allocations, %d with everything mounted", name, least[0], least[1])
			jitter := uint64(2)
			if raceEnabled { // pools forget at random
				jitter += least[0] / 100
			}
			if bare := least[0]; least[1] > bare+jitter {
				t.Errorf("%s: %d allocations with everything mounted, %d without", name, least[1], bare)
			}
		}
	})
}

// BenchmarkUnasked measures the cost of unused services for operators. It alternates in random
// order between bare servers and servers with all services, so that both share the load of the
// machine. There are several servers of each type, because even two equal servers differ by their
// memory layout. An operation is one of each type.
func BenchmarkUnasked(b *testing.B) {
	for _, name := range []string{"endpoint", "full", "connect"} {
		b.Run(name, func(b *testing.B) {
			var pairs [10][]*fixture
			for i := range pairs {
				pairs[i] = bareAndWatched(b)
			}
			do, took, n := operations()[name], make([][]time.Duration, 2), 0
			for b.Loop() {
				first := rand.IntN(2)
				for _, i := range []int{first, 1 - first} {
					begun := time.Now()
					do(pairs[n%len(pairs)][i], n)
					took[i] = append(took[i], time.Since(begun))
				}
				n++
			}
			var medians []float64
			for _, of := range took {
				slices.Sort(of)
				medians = append(medians, float64(of[len(of)/2].Nanoseconds()))
			}
			reportBoth(b, "ns", medians)
		})
	}
	b.Run("heap", func(b *testing.B) {
		const proxies = 500
		retained, rounds := make([]float64, 2), 0.0
		for b.Loop() {
			both, first := bareAndWatched(b), rand.IntN(2)
			for _, i := range []int{first, 1 - first} {
				before := heap()
				both[i].crowd(proxies)
				retained[i] += (heap() - before) / proxies
			}
			rounds++
		}
		reportBoth(b, "B/proxy", []float64{retained[0] / rounds, retained[1] / rounds})
	})
}

// reportBoth reports figures of the bare servers and the others.
func reportBoth(b *testing.B, unit string, of []float64) {
	b.Helper()
	b.ReportMetric(of[0], "bare-"+unit)
	b.ReportMetric(of[1], "watched-"+unit)
	b.ReportMetric(100*(of[1]/of[0]-1), "%more")
}

// heap returns the bytes that live.
func heap() float64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// crowd connects proxies that have one cluster and its assignment, 500 on a connection.
func (f *fixture) crowd(proxies int) {
	f.t.Helper()
	var conn *grpc.ClientConn
	for i := range proxies {
		if i%500 == 0 {
			conn = f.dial()
		}
		c := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true, Node: node(fmt.Sprint("n", i)), NoHistory: true})
		f.t.Cleanup(c.Close)
		if err := c.Connect(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if err := c.Subscribe(envoy.ClusterType, "outbound|80||h2"); err != nil {
			f.t.Fatal(err)
		}
		if err := c.Subscribe(envoy.LoadAssignmentType, "outbound|80||h2"); err != nil {
			f.t.Fatal(err)
		}
	}
	f.applied()
}
