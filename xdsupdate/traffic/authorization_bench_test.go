// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
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

// BenchmarkAuthorizationChange measures from the change of a policy to the answers of the 10 routers of its
// namespace, of 1,000 that are connected, beside ten policies for each namespace.
func BenchmarkAuthorizationChange(b *testing.B) {
	for _, policies := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("policies=%d", policies), func(b *testing.B) {
			namespaces := policies / 10
			x := &bench{b: b, store: storememory.NewController(storememory.Make(istio.Schemas()))}
			create := func(c configstore.Config) {
				if _, err := x.store.Create(c); err != nil {
					b.Fatal(err)
				}
			}
			create(benchGateway(0))
			for i := range policies {
				create(benchAuthorization(i, namespaces, 0))
			}
			x.server = ads.New(aggregate.NewController(), ads.Options{
				Providers: []ads.Provider{traffic.New(x.store)}, Pusher: xdsupdate.PusherOptions{DebounceAfter: -1},
			})
			x.store.Drain()
			x.serve()
			for i := range 1000 {
				x.connect(i, "router", fmt.Sprintf("ns%d", i%100), map[string]any{"app": "edge"}, map[string][]string{envoy.ListenerType: {"*"}})
			}
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				x.update(benchAuthorization(7, namespaces, n))
			}
		})
	}
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
				Providers: []ads.Provider{traffic.New(x.store)}, Pusher: xdsupdate.PusherOptions{DebounceAfter: -1},
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
