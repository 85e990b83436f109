// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// benchAuthorization is one of ten policies of a namespace.
func benchAuthorization(i, namespaces, change int) configstore.Config {
	c := benchObject(istio.AuthorizationPolicy, i, "a", &security.AuthorizationPolicy{
		Action: security.AuthorizationPolicy_DENY,
		Rules: []*security.Rule{{
			From: []*security.Rule_From{{Source: &security.Source{NotNamespaces: []string{fmt.Sprintf("client%d", i)}}}},
			To:   []*security.Rule_To{{Operation: &security.Operation{Paths: []string{fmt.Sprintf("/admin%d", change%2)}}}},
		}},
	})
	c.Namespace = fmt.Sprintf("ns%d", i%namespaces)
	return c
}

// BenchmarkAuthorizationChange measures from the change of a policy to the answers of the 10 routers, or gRPC servers, of its
// namespace, of 1,000 that are connected and share the process, beside ten policies for each namespace: what of that is before
// the responses to all of them are written, and what the push is.
func BenchmarkAuthorizationChange(b *testing.B) {
	for _, proxies := range []struct {
		name    string
		connect func(x *bench)
	}{{"routers", (*bench).guardedRouters}, {"servers", (*bench).guardedServers}} {
		for _, policies := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/policies=%d", proxies.name, policies), func(b *testing.B) {
				namespaces := policies / 10
				times := &pushTimes{}
				x := newAuthorizationBench(b, policies, namespaces, times)
				proxies.connect(x)
				b.ReportAllocs()
				times.reset()
				for n := 1; b.Loop(); n++ {
					times.begin()
					x.update(benchAuthorization(7, namespaces, n))
				}
				times.report(b)
			})
		}
	}
}

// newAuthorizationBench starts a server with policies of namespaces, and services of 100 of them with ten endpoints each.
func newAuthorizationBench(b *testing.B, policies, namespaces int, observer ads.Observer) *bench {
	b.Helper()
	x := &bench{b: b, store: storememory.NewController(storememory.Make(istio.Schemas()))}
	list := []configstore.Config{benchGateway(0)}
	for i := range policies {
		list = append(list, benchAuthorization(i, namespaces, 0))
	}
	for i := range benchNamespaces {
		list = append(list, guardedService(i))
	}
	for _, c := range list {
		if _, err := x.store.Create(c); err != nil {
			b.Fatal(err)
		}
	}
	registries := aggregate.NewController()
	x.server = ads.New(registries, ads.Options{
		Providers: []ads.Provider{traffic.New(x.store)}, Debounce: xdsupdate.Debounce{After: -1}, Observer: observer,
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(x.store, updater, serviceentry.Options{ClusterID: "c1"})
	})
	x.store.Drain()
	x.serve()
	return x
}

// guardedService is a service of the clients of a namespace.
func guardedService(i int) configstore.Config {
	var endpoints []*networking.WorkloadEntry
	for n := range 10 {
		endpoints = append(endpoints, &networking.WorkloadEntry{Address: benchAddress(n*benchNamespaces + i), Labels: map[string]string{"app": "edge"}})
	}
	return benchObject(istio.ServiceEntry, i, "s", &networking.ServiceEntry{
		Hosts: []string{scaleHost(i)}, Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "grpc", Protocol: "GRPC"}}, Endpoints: endpoints,
	})
}

// guardedRouters connects 1,000 routers of 100 namespaces.
func (x *bench) guardedRouters() {
	for i := range 1000 {
		x.connect(i, "router", fmt.Sprintf("ns%d", i%benchNamespaces), map[string]any{"app": "edge"}, map[string][]string{envoy.ListenerType: {"*"}})
	}
}

// guardedServers connects 1,000 gRPC servers of 100 namespaces, of which each has a listener of its own.
func (x *bench) guardedServers() {
	for i := range 1000 {
		name := xdsbuild.InboundName(netip.AddrPortFrom(netip.MustParseAddr(benchAddress(i)), 80))
		x.connectNode(&core.Node{
			Id: fmt.Sprintf("sidecar~%s~p%d.ns%d~x", benchAddress(i), i, i%benchNamespaces), UserAgentName: "gRPC Go",
		}, map[string][]string{envoy.ListenerType: {name}})
	}
}

// pushTimes observes how long pushes take, and when what follows from them was written.
type pushTimes struct {
	ads.NoObserver
	mu                    sync.Mutex
	changes               int
	began                 time.Time
	last, written, pushes time.Duration
}

// begin says that something changes: all that followed from the change before has been written.
func (t *pushTimes) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes, t.written, t.last, t.began = t.changes+1, t.written+t.last, 0, time.Now()
}

func (t *pushTimes) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes, t.last, t.written, t.pushes = 0, 0, 0, 0
}

func (t *pushTimes) Response(ads.Stream, ads.ResponseEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Since(t.began)
}

func (t *pushTimes) Pushed(e ads.PushEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pushes += e.Took
}

func (t *pushTimes) report(b *testing.B) {
	b.Helper()
	t.begin()
	t.mu.Lock()
	defer t.mu.Unlock()
	b.ReportMetric(float64(t.written.Nanoseconds())/float64(t.changes-1), "written-ns/op")
	b.ReportMetric(float64(t.pushes.Nanoseconds())/float64(t.changes-1), "push-ns/op")
}

// benchRules is a policy with many rules, each for another client and path.
func benchRules(rules, change int) configstore.Config {
	spec := &security.AuthorizationPolicy{Action: security.AuthorizationPolicy_DENY}
	for i := range rules {
		spec.Rules = append(spec.Rules, &security.Rule{
			From: []*security.Rule_From{{Source: &security.Source{NotNamespaces: []string{fmt.Sprintf("client%d", i)}}}},
			To:   []*security.Rule_To{{Operation: &security.Operation{Paths: []string{fmt.Sprintf("/admin%d-%d", i, change%2)}}}},
		})
	}
	c := benchObject(istio.AuthorizationPolicy, 0, "a", spec)
	c.Namespace = "ns0"
	return c
}

// BenchmarkAuthorizationRules measures from the change of a policy with many rules, all of them, to
// the answer of a router, and how large its listener is.
func BenchmarkAuthorizationRules(b *testing.B) {
	for _, rules := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			x := &bench{b: b, store: storememory.NewController(storememory.Make(istio.Schemas()))}
			for _, c := range []configstore.Config{benchGateway(0), benchRules(rules, 0)} {
				if _, err := x.store.Create(c); err != nil {
					b.Fatal(err)
				}
			}
			x.server = ads.New(aggregate.NewController(), ads.Options{
				Providers: []ads.Provider{traffic.New(x.store)}, Debounce: xdsupdate.Debounce{After: -1},
			})
			x.store.Drain()
			x.serve()
			x.connect(0, "router", "ns0", map[string]any{"app": "edge"}, map[string][]string{envoy.ListenerType: {"*"}})
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				x.update(benchRules(rules, n))
			}
			b.ReportMetric(float64(x.listenerBytes()), "bytes/listener")
		})
	}
}

// listenerBytes returns the size of the listeners of the first client, encoded.
func (x *bench) listenerBytes() (size int) {
	for proxy := range x.server.Resources(nil) {
		for _, r := range proxy.Resources {
			m, err := r.Accepted.Message()
			if err != nil {
				x.b.Fatal(err)
			}
			size += proto.Size(m)
		}
		break
	}
	return size
}

// BenchmarkAuthorizationHeap measures what a policy takes of the heap, beside the object in the store, which
// the store would have without policies, too.
func BenchmarkAuthorizationHeap(b *testing.B) {
	const policies = 10_000
	for b.Loop() {
		b.StopTimer()
		store := storememory.NewController(storememory.Make(istio.Schemas()))
		for i := range policies {
			if _, err := store.Create(benchAuthorization(i, policies/10, 0)); err != nil {
				b.Fatal(err)
			}
		}
		store.Drain()
		before := liveHeap()
		b.StartTimer()
		server := ads.New(aggregate.NewController(), ads.Options{Providers: []ads.Provider{traffic.New(store)}})
		store.Drain()
		if err := server.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(liveHeap()-before)/policies, "heap-bytes/policy")
		runtime.KeepAlive(server)
		b.StartTimer()
	}
}

// liveHeap returns how much of the heap is in use.
func liveHeap() int64 {
	var m runtime.MemStats
	for range 2 { // what finalizers hold on to goes with the second one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than there is memory
}
