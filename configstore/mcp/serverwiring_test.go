// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestServerWaitsForSync: before the cache has synced no response is sent, regardless of its
// content; then all of it is sent. A server that stops before that has sent nothing.
func TestServerWaitsForSync(t *testing.T) {
	for name, syncs := range map[string]bool{"synced late": true, "never synced": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.Make(istio.Schemas())
				e := &exporter{Store: store, tb: t, cache: memory.NewController(store), listener: memnet.Listen()}
				var synced atomic.Bool
				e.cache.RegisterHasSyncedHandler(synced.Load)
				e.server = NewServer(e.cache, ServerOptions{ADS: ads.Options{}})
				e.run()
				c := stockClient(t, e.listener, controlPlane("pilot", ""), nil, stockTypes()...)
				e.create(entry("shop", "a"))
				time.Sleep(time.Minute)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := e.server.Flush(ctx); err == nil {
					t.Error("Flush returned before the cache has synced")
				}
				if got := c.take(); len(got) > 0 {
					t.Errorf("answered before the cache has synced: %v", got)
				}
				if !syncs {
					e.stop()
					<-c.done
					same(t, "answered", c.take(), []gotResponse(nil))
					same(t, "code", status.Code(c.ended()), codes.Unavailable)
					return
				}
				e.create(entry("shop", "b"))
				synced.Store(true)
				time.Sleep(time.Minute)
				got := c.take()
				same(t, "answered", len(got), len(stockTypes()))
				same(t, "contents", c.contents(), e.wanted(""))
			})
		})
	}
}

// TestServerAsksWhoConnects: a client that Options.Proxy refuses gets its error and nothing else.
func TestServerAsksWhoConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := export(t, ServerOptions{ADS: ads.Options{Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) {
			if strings.Contains(node.GetId(), "stranger") {
				return nil, status.Error(codes.PermissionDenied, "not a control plane")
			}
			return &registry.Proxy{ID: "known", Namespace: "elsewhere"}, nil
		}}}, entry("shop", "a"))
		stranger := stockClient(t, e.listener, controlPlane("stranger", ""), nil, entryType())
		known := stockClient(t, e.listener, controlPlane("pilot", ""), nil, stockTypes()...)
		<-stranger.done
		same(t, "code", status.Code(stranger.ended()), codes.PermissionDenied)
		same(t, "answered", stranger.take(), []gotResponse(nil))
		synctest.Wait()
		same(t, "contents", known.contents(), e.wanted(""))
		same(t, "view", e.status("known").View.Namespace, "")
	})
}

// plainCache has only the abilities that every cache has, batchedCache batches too.
type plainCache struct{ configstore.ConfigStoreCache }

type batchedCache struct {
	configstore.ConfigStoreCache
	configstore.Subscriber
}

// TestServerOfAnyCache: a cache needs no abilities, and may have been running before.
func TestServerOfAnyCache(t *testing.T) {
	for name, wrap := range map[string]func(*memory.Controller) configstore.ConfigStoreCache{
		"plain":   func(c *memory.Controller) configstore.ConfigStoreCache { return plainCache{c} },
		"batched": func(c *memory.Controller) configstore.ConfigStoreCache { return batchedCache{plainCache{c}, c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.Make(istio.Schemas())
				e := &exporter{Store: store, tb: t, cache: memory.NewController(store), listener: memnet.Listen()}
				for i := range 10 {
					e.create(entry("shop", fmt.Sprint("e", i)))
				}
				synced := make(chan struct{})
				ready := sync.OnceFunc(func() { close(synced) })
				e.stop = serveOn(t, e.listener, func(g grpc.ServiceRegistrar) {
					e.server = NewServer(wrap(e.cache), ServerOptions{ADS: ads.Options{}})
					e.server.Register(g)
				}, e.cache.Run, func(stop <-chan struct{}) { <-synced; e.server.Run(stop) })
				t.Cleanup(ready)
				synctest.Wait() // the cache has synced before the server runs
				c := stockClient(t, e.listener, controlPlane("pilot", ""), nil, stockTypes()...)
				e.remove(istio.ServiceEntry, "shop", "e3")
				ready()
				e.settle()
				same(t, "contents", c.contents(), e.wanted(""))
				e.create(rule("shop", "r"))
				e.remove(istio.ServiceEntry, "shop", "e4")
				e.update(entry("shop", "e5", "other.example.com"))
				e.settle()
				same(t, "contents after changes", c.contents(), e.wanted(""))
			})
		})
	}
}

// TestServerMistakes: an impossible configuration panics at once.
func TestServerMistakes(t *testing.T) {
	cache := memory.NewController(memory.Make(istio.Schemas()))
	for want, f := range map[string]func(){
		"mcp.NewServer: the cache is nil":                       func() { NewServer(nil) },
		"mcp.NewProvider: the cache is nil":                     func() { NewProvider(nil) },
		"mcp.NewServer: 2 arguments of the type mcp.Server":     func() { NewServer(cache, ServerOptions{}, ServerOptions{}) },
		"mcp.NewProvider: 2 arguments of the type mcp.Provider": func() { NewProvider(cache, ProviderOptions{}, ProviderOptions{}) },
		"mcp: Run called twice":                                 func() { runTwice(NewServer(cache)) },
		"mcp: a provider is for one server":                     func() { p := NewProvider(cache); p.Attach(ads.New(nil)); p.Attach(ads.New(nil)) },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, want) {
					t.Errorf("panic %q, want %q", said, want)
				}
			}()
			f()
		})
	}
}

func runTwice(s *Server) {
	stop := make(chan struct{})
	close(stop)
	s.Run(stop)
	s.Run(stop)
}
