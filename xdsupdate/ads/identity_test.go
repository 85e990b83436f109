// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// privateServices are services of namespaces that only they see.
func privateServices() []*registry.Service {
	return []*registry.Service{
		service("a", "first", exportTo(".")), service("b", "second", exportTo(".")), service("c", "third", exportTo(".")),
	}
}

// TestProxyUpdateWhileAClientComes: a ProxyUpdate between the host's answer and
// the moment when the server has it is not lost.
func TestProxyUpdateWhileAClientComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *fixture
		var namespace atomic.String
		namespace.Store("first")
		var once sync.Once
		f = serve(t, ads.Options{Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			p := ads.ProxyOf(n)
			p.Namespace = namespace.Load()
			once.Do(func() {
				namespace.Store("second")
				f.ProxyUpdate("", "10.0.0.1")
			})
			return p, nil
		}}, privateServices()...)
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "x")})
		f.subscribe(c, envoy.ClusterType)
		r, err := c.Next(f.context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, "clusters", r.Names(), []string{cluster("b")})
	})
}

// TestProxyUpdatesAtOnce: of two that overlap, what holds in the end is what the
// host says after the second.
func TestProxyUpdatesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var namespace atomic.String
		namespace.Store("first")
		asked, proceed := make(chan struct{}), make(chan struct{})
		var block atomic.Bool
		f := serve(t, ads.Options{Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			p := ads.ProxyOf(n)
			p.Namespace = namespace.Load()
			if block.CompareAndSwap(true, false) {
				close(asked)
				<-proceed
			}
			return p, nil
		}}, privateServices()...)
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "x")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"))
		namespace.Store("second")
		block.Store(true)
		var updates sync.WaitGroup
		updates.Go(func() { f.ProxyUpdate("", "10.0.0.1") })
		<-asked
		namespace.Store("third")
		f.ProxyUpdate("", "10.0.0.1")
		close(proceed)
		updates.Wait()
		f.await(c, envoy.ClusterType, cluster("c"))
	})
}

// TestNodeChanges: a stream may not become another's.
func TestNodeChanges(t *testing.T) {
	// On each stream the third request is of another node.
	nodes := []*core.Node{node("a", "first"), node("a", "first"), node("b", "first")}
	refused := func(t *testing.T, err error) {
		t.Helper()
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "node id changed") {
			t.Errorf("Recv = %v, want InvalidArgument because the node changed", err)
		}
	}
	t.Run("sotw", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, ads.Options{}, privateServices()...)
			s, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).StreamAggregatedResources(f.context())
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range nodes {
				if err := s.Send(&discovery.DiscoveryRequest{Node: n, TypeUrl: envoy.ListenerType, ResourceNames: []string{fmt.Sprint("none-", i)}}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.Recv()
			refused(t, err)
		})
	})
	t.Run("delta", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, ads.Options{}, privateServices()...)
			s, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				if err := s.Send(&discovery.DeltaDiscoveryRequest{Node: n, TypeUrl: envoy.RouteType}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.Recv()
			refused(t, err)
		})
	})
}

// TestRefusedBeforeAnything: a client that the host does not know is sent nothing.
func TestRefusedBeforeAnything(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{Proxy: func(context.Context, *core.Node) (*registry.Proxy, error) {
					return nil, status.Error(codes.Unauthenticated, "no certificate")
				}}, service("a", "shop"))
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				if _, err := c.Next(f.context()); status.Code(err) != codes.Unauthenticated || status.Convert(err).Message() == "" {
					t.Errorf("Next = %v, want Unauthenticated", err)
				}
				check(t, "proxies", len(f.Proxies()), 0)
			})
		})
	}
}
