// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const customType = "type.googleapis.com/google.protobuf.StringValue"

// serviceOf returns the name of the service in a client's cluster.
func serviceOf(tb testing.TB, c *xdstest.Client, host string) string {
	tb.Helper()
	m, err := c.State().Resources(envoy.ClusterType)[cluster(host)].Message()
	if err != nil {
		tb.Fatal(err)
	}
	services := m.(interface{ GetMetadata() *core.Metadata }).GetMetadata().GetFilterMetadata()["istio"].GetFields()["services"]
	return services.GetListValue().GetValues()[0].GetStructValue().GetFields()["name"].GetStringValue()
}

// TestLargeResponsesAreDivided: gRPC takes 4 MiB by default.
func TestLargeResponsesAreDivided(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{})
				var names []string
				for i := range 10 {
					names = append(names, fmt.Sprint(i))
					size := 900_000
					if i%3 == 2 {
						size = 3_000_000
					}
					f.setResource(names[i], wrapperspb.String(strings.Repeat("x", size)))
				}
				f.flush()
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, customType, names...)
				for total := 0; total < len(names); {
					r, err := c.Next(f.context())
					if err != nil {
						t.Fatal(err)
					}
					if r.Bytes > 4<<20 {
						t.Errorf("%d resources, %d bytes in a response", len(r.Resources), r.Bytes)
					}
					total += len(r.Resources)
				}
				f.waitApplied()
			})
		})
	}
}

func TestProxyUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var namespace atomic.String
		namespace.Store("shop")
		options := ads.Options{Proxy: func(_ context.Context, n *core.Node) (*registry.Proxy, error) {
			p := ads.ProxyOf(n)
			p.Namespace = namespace.Load()
			if p.Namespace == "unknown" {
				return nil, status.Error(codes.PermissionDenied, "unknown proxy")
			}
			return p, nil
		}}
		f := serve(t, options, service("a", "shop", exportTo(".")), service("b", "other", exportTo(".")), service("c", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "x")})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, cluster("a"), cluster("c"))
		f.waitApplied()
		since := len(c.Responses())
		namespace.Store("other")
		f.ProxyUpdate("", "10.0.0.99")       // another proxy's
		f.ProxyUpdate("", "::ffff:10.0.0.1") // the same address in another spelling
		f.await(c, envoy.ClusterType, cluster("b"), cluster("c"))
		f.waitApplied()
		check(t, "responses", received(c, since), []string{"CDS " + cluster("b"), "CDS -" + cluster("a")})

		// The stream of a proxy that is not known any more ends.
		namespace.Store("unknown")
		f.ProxyUpdate("", "10.0.0.1")
		if err := c.Await(f.context(), func(xdstest.State) bool { return false }); err == nil {
			t.Error("stream lives")
		}
		if err := c.Connect(f.context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Await(f.context(), func(xdstest.State) bool { return false }); status.Code(errors.Unwrap(err)) != codes.PermissionDenied {
			t.Errorf("stream ended with %v, want PermissionDenied", err)
		}
	})
}

// TestSlowClient: a client that reads nothing, and one that answers nothing,
// delay no other client.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		deaf, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
		if err != nil {
			t.Fatal(err)
		}
		if err := deaf.Send(&discovery.DeltaDiscoveryRequest{
			Node: node("deaf", "shop"), TypeUrl: envoy.LoadAssignmentType, ResourceNamesSubscribe: []string{cluster("a")},
		}); err != nil {
			t.Fatal(err)
		}
		mute := f.client(xdstest.ClientOptions{Delta: true, Node: node("mute", "shop"), Manual: true})
		f.subscribe(mute, envoy.LoadAssignmentType, cluster("a"))
		first, err := mute.Next(f.context())
		if err != nil {
			t.Fatal(err)
		}
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("good", "shop")})
		f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
		f.await(c, envoy.LoadAssignmentType, cluster("a"))
		good := func(p ads.ProxyStatus) bool { return p.ID == node("good", "shop").GetId() }
		for i := range 200 {
			f.eds("a", "shop", endpoint(fmt.Sprintf("10.0.1.%d", i+1), 80))
			if err := f.WaitApplied(f.context(), good); err != nil {
				t.Fatal(err)
			}
		}
		check(t, "addresses", addressesOf(t, c, "a"), []string{"10.0.1.200"})

		// The mute one is sent the last state only, and only when it has answered.
		if got := len(mute.Responses()); got != 1 {
			t.Errorf("%d responses without an answer", got)
		}
		if err := mute.Ack(first); err != nil {
			t.Fatal(err)
		}
		second, err := mute.Next(f.context())
		if err != nil {
			t.Fatal(err)
		}
		if err := mute.Ack(second); err != nil {
			t.Fatal(err)
		}
		if err := f.WaitApplied(f.context(), func(p ads.ProxyStatus) bool { return p.ID == node("mute", "shop").GetId() }); err != nil {
			t.Fatal(err)
		}
		check(t, "responses", len(mute.Responses()), 2)
		check(t, "addresses", addressesOf(t, mute, "a"), []string{"10.0.1.200"})
	})
}

func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
		f.flush()
		var clients []*xdstest.Client
		conn := f.dial()
		for i := range 100 {
			c := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: i%2 == 0, Node: node(fmt.Sprintf("p%d", i), "shop")})
			t.Cleanup(c.Close)
			if err := c.Connect(f.context()); err != nil {
				t.Fatal(err)
			}
			f.subscribe(c, envoy.LoadAssignmentType, cluster([]string{"a", "b"}[i/50]))
			clients = append(clients, c)
		}
		for i, c := range clients {
			f.await(c, envoy.LoadAssignmentType, cluster([]string{"a", "b"}[i/50]))
		}
		f.eds("a", "shop", endpoint("10.0.0.1", 80))
		f.waitApplied()
		for i, c := range clients {
			if want := 2 - i/50; len(c.Responses()) != want {
				t.Errorf("client %d: %d responses, want %d", i, len(c.Responses()), want)
			}
		}
		check(t, "proxies", len(f.Proxies()), 100)
	})
}

// TestNoClientIsAnsweredBeforeTheFirstState: an answer from nothing would take
// everything away from a proxy that comes back.
func TestNoClientIsAnsweredBeforeTheFirstState(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := ads.New(&services{list: []*registry.Service{service("a", "shop")}}, ads.Options{})
				grpcServer, listener := grpc.NewServer(), network(t)
				server.Register(grpcServer)
				var running sync.WaitGroup
				running.Go(func() { _ = grpcServer.Serve(listener) })
				defer running.Wait()
				defer grpcServer.Stop()
				conn := dialTo(t, listener)
				defer func() { _ = conn.Close() }()
				ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
				defer cancel()
				c := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: delta})
				defer c.Close()
				if err := c.Connect(ctx); err != nil {
					t.Fatal(err)
				}
				if err := c.Subscribe(envoy.ClusterType); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				check(t, "responses before", len(c.Responses()), 0)
				server.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
				if err := server.Flush(ctx); err != nil { // without Run
					t.Fatal(err)
				}
				r, err := c.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				check(t, "names", r.Names(), []string{cluster("a")})
			})
		})
	}
}

func TestRunEndsTheStreams(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"))
				server := ads.New(f.services, ads.Options{})
				grpcServer, listener := grpc.NewServer(), network(t)
				server.Register(grpcServer)
				stop := make(chan struct{})
				var running, serving sync.WaitGroup
				running.Go(func() { server.Run(stop) })
				serving.Go(func() { _ = grpcServer.Serve(listener) })
				defer serving.Wait()
				defer grpcServer.Stop()
				f.listener = listener
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				f.await(c, envoy.ClusterType, cluster("a"))
				close(stop)
				running.Wait()
				err := c.Await(f.context(), func(xdstest.State) bool { return false })
				if status.Code(err) != codes.Unavailable {
					t.Errorf("stream ended with %v, want Unavailable", err)
				}
			})
		})
	}
}

// TestNoCallIsLost moves endpoints under a constant stream of calls.
func TestNoCallIsLost(t *testing.T) {
	backends := []*registry.Endpoint{startBackend(t, "one"), startBackend(t, "two"), startBackend(t, "three")}
	f := serve(t, ads.Options{}, service("a", "shop"))
	f.eds("a", "shop", backends[0])
	client := f.xdsClient("xds:///a:80", "n1")
	ctx := f.context()
	call(ctx, t, client)
	var calls atomic.Int64
	done := make(chan struct{})
	var caller sync.WaitGroup
	caller.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				call(ctx, t, client)
				calls.Inc()
			}
		}
	})
	for i := range 20 {
		from, to := backends[i%3], backends[(i+1)%3]
		f.eds("a", "shop", from, to)
		callUntil(ctx, t, client, []string{"one", "two", "three"}[(i+1)%3])
		f.eds("a", "shop", to)
		f.waitApplied()
	}
	close(done)
	caller.Wait()
	t.Logf("%d calls", calls.Load())
}

func TestProxyOf(t *testing.T) {
	p := ads.ProxyOf(&core.Node{
		Id: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Locality: &core.Locality{Region: "r", Zone: "z"},
	})
	check(t, "proxy", p, &registry.Proxy{
		ID: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", Namespace: "shop",
		IPAddresses: []string{"10.0.0.1"}, Locality: "r/z",
	})
	metadata, err := structpb.NewStruct(map[string]any{
		"NODE_NAME": "node-1", "POD_PORTS": `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "pod", ads.ProxyOf(&core.Node{Id: "x", Metadata: metadata}), &registry.Proxy{
		ID: "x", NodeName: "node-1", WorkloadPorts: []registry.WorkloadPort{{Name: "http", Number: 8080, Protocol: "TCP"}},
	})
	dotted := "sidecar~10.0.0.1~web.v1-0.shop~shop.svc.cluster.local"
	check(t, "pod with dots", ads.ProxyOf(&core.Node{Id: dotted}), &registry.Proxy{ID: dotted, Namespace: "shop", IPAddresses: []string{"10.0.0.1"}})
	check(t, "bare", ads.ProxyOf(&core.Node{Id: "x"}), &registry.Proxy{ID: "x"})
	check(t, "none", ads.ProxyOf(nil), &registry.Proxy{})
}
