// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestProviderBesideProxies: one server on one port sends proxies their resources and control
// planes the configs of their revisions, and never mixes them.
func TestProviderBesideProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Make(istio.Schemas())
		e := &exporter{Store: store, tb: t, cache: memory.NewController(store), listener: memnet.Listen()}
		e.create(entry("shop", "a"))
		e.create(labelled(entry("shop", "b"), "canary"))
		server := ads.New(nil, ads.Options{
			Providers: []ads.Provider{NewProvider(e.cache, ProviderOptions{Revision: "stable", ControlPlanes: []string{"istiod"}})},
			Limits:    ads.Limits{Types: 100},
			Debounce:  xdsupdate.Debounce{After: -1},
			Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) { // as if by certificates
				out := &registry.Proxy{ID: node.GetId()}
				switch {
				case strings.Contains(node.GetId(), "thief"):
					out.Identity = "web"
				case !strings.Contains(node.GetId(), "nobody"):
					out.Identity = "istiod"
				}
				return out, nil
			},
		})
		if err := server.SetResource("l", &listenerv3.Listener{Name: "l"}); err != nil {
			t.Fatal(err)
		}
		serveOn(t, e.listener, server.Register, e.cache.Run, server.Run)
		control := stockClient(t, e.listener, controlPlane("pilot", ""), nil, stockTypes()...)
		canary := deltaClient(t, e.listener, controlPlane("canary", "canary"), nil, stockTypes()...)
		// It says that it is a control plane, and is not.
		thief := stockClient(t, e.listener, controlPlane("thief", "canary"), nil, stockTypes()...)
		nobody := deltaClient(t, e.listener, controlPlane("nobody", ""), nil, stockTypes()...)
		conn := dial(t, e.listener)
		t.Cleanup(func() { _ = conn.Close() })
		proxy := xdstest.NewClient(conn, xdstest.ClientOptions{Node: &core.Node{Id: "proxy"}})
		if err := proxy.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		for _, typeURL := range []string{envoy.ListenerType, entryType()} {
			if err := proxy.Subscribe(typeURL, "*"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			synctest.Wait()
			same(t, "control plane", control.contents(), e.wanted("stable"))
			same(t, "canary", canary.contents(), e.wanted("canary"))
			same(t, "thief", objectsIn(thief.contents()), 0)
			same(t, "nobody", objectsIn(nobody.contents()), 0)
			same(t, "listeners of the proxy", proxy.State().Names(envoy.ListenerType), []string{"l"})
			same(t, "configs of the proxy", len(proxy.State().Names(entryType())), 0)
			e.create(entry("shop", fmt.Sprint("c", i)))
			if err := e.cache.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// objectsIn is how many objects of all kinds there are.
func objectsIn[M ~map[string]V, V ~map[K]C, K comparable, C any](contents M) (n int) {
	for _, objects := range contents {
		n += len(objects)
	}
	return n
}

// countingProvider counts how often resources are made.
type countingProvider struct {
	*provider
	made *atomic.Int64
}

func (c countingProvider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	provided, changes := c.provider.Provide(push)
	return countingServed{provided.(*served), c.made}, changes
}

type countingServed struct {
	*served
	made *atomic.Int64
}

func (c countingServed) count(a ads.Answer) ads.Answer {
	if build := a.Build; build != nil {
		a.Build = func() (proto.Message, error) {
			c.made.Inc()
			return build()
		}
	}
	return a
}

func (c countingServed) Lookup(v ads.View, typeURL, name string) ads.Answer {
	return c.count(c.served.Lookup(v, typeURL, name))
}

func (c countingServed) List(v ads.View, typeURL string) (iter.Seq2[string, ads.Answer], bool) {
	list, only := c.served.List(v, typeURL)
	return func(yield func(string, ads.Answer) bool) {
		for name, a := range list {
			if !yield(name, c.count(a)) {
				return
			}
		}
	}, only
}

// TestServerOfIdleObjects: if one of 10,000 objects changes, only that one is encoded, once for all
// clients, and by delta only that one is sent.
func TestServerOfIdleObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := tier.Share(10_000)
		store := memory.Make(istio.Schemas())
		e := &exporter{Store: store, tb: t, cache: memory.NewController(store), listener: memnet.Listen()}
		var batch []configstore.Mutation
		for i := range objects {
			batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: entry("shop", fmt.Sprint("e", i))})
		}
		if _, err := e.Apply(batch...); err != nil {
			t.Fatal(err)
		}
		p := countingProvider{NewProvider(e.cache, ProviderOptions{ControlPlanes: []string{""}}).(*provider), &atomic.Int64{}}
		server := ads.New(nil, ads.Options{Providers: []ads.Provider{p}, Limits: ads.Limits{Types: 100}, Debounce: xdsupdate.Debounce{After: -1}})
		serveOn(t, e.listener, server.Register, e.cache.Run, server.Run)
		synctest.Wait() // the first push is done: clients of different pushes may share less
		sotw := stockClient(t, e.listener, controlPlane("a", ""), nil, stockTypes()...)
		synctest.Wait()
		delta := deltaClient(t, e.listener, controlPlane("b", "canary"), nil, stockTypes()...)
		synctest.Wait()
		sent := func() (counts []int) {
			for _, c := range []*answers{sotw, delta} {
				n := 0
				for _, r := range c.take() {
					n += len(r.names)
				}
				counts = append(counts, n)
			}
			return counts
		}
		same(t, "sent at first", sent(), []int{objects, objects})
		same(t, "made at first", p.made.Load(), int64(objects))
		e.update(entry("shop", "e77", "other.example.com"))
		synctest.Wait()
		same(t, "sent of one change", sent(), []int{objects, 1})
		e.create(rule("shop", "r"))
		synctest.Wait()
		same(t, "sent of another kind", sent(), []int{1, 1})
		e.remove(istio.ServiceEntry, "shop", "e78")
		synctest.Wait()
		same(t, "sent of a deletion", sent(), []int{objects - 1, 0})
		same(t, "made", p.made.Load(), int64(objects+2))
	})
}

// BenchmarkServerUpdate is the cost of one changed object of many, from its write until the
// client has it.
func BenchmarkServerUpdate(b *testing.B) {
	for _, objects := range []int{1000, 10_000} {
		for name, connect := range map[string]func(testing.TB, *memnet.Listener, func(gotResponse) string){
			"delta": func(tb testing.TB, l *memnet.Listener, told func(gotResponse) string) {
				tb.Helper()
				deltaClientOf(tb, l, controlPlane("d", ""), nil, told, entryType())
			},
			"SotW": func(tb testing.TB, l *memnet.Listener, told func(gotResponse) string) {
				tb.Helper()
				stockClient(tb, l, controlPlane("s", ""), told, entryType())
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, objects), func(b *testing.B) { benchmarkUpdate(b, objects, connect) })
		}
	}
}

func benchmarkUpdate(b *testing.B, objects int, connect func(testing.TB, *memnet.Listener, func(gotResponse) string)) {
	b.Helper()
	configs := make([]configstore.Config, objects)
	for i := range configs {
		configs[i] = entry("shop", fmt.Sprint("e", i))
	}
	e := export(b, ServerOptions{}, configs...)
	got := make(chan gotResponse, 1)
	connect(b, e.listener, func(r gotResponse) string {
		got <- r
		return ""
	})
	<-got
	sent := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		e.update(entry("shop", "e7", fmt.Sprintf("h%d.example.com", i)))
		sent += len((<-got).names)
	}
	b.ReportMetric(float64(sent)/float64(b.N), "objects/op")
}
