// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/snapshots"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// fixture is a server of snapshots.
type fixture struct {
	*testing.T
	nodes  *snapshots.Snapshots
	server *ads.Server
	conn   *grpc.ClientConn
	first  chan struct{} // closed when the first request was handled
}

// observer closes fixture.first.
type observer struct {
	ads.NoObserver
	request func()
}

func (o observer) Request(ads.Stream, ads.RequestEvent) { o.request() }

func newFixture(t *testing.T, opts ...snapshots.Options) *fixture {
	t.Helper()
	nodes := snapshots.New(opts...)
	first := make(chan struct{})
	server := ads.New(nil, ads.Options{
		Providers: []ads.Provider{nodes}, Observer: observer{request: sync.OnceFunc(func() { close(first) })},
	})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { server.Run(stop) })
	running.Go(func() { _ = grpcServer.Serve(listener) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		grpcServer.Stop()
		close(stop)
		running.Wait()
	})
	return &fixture{t, nodes, server, conn, first}
}

// client returns a connected client of a node that is subscribed to all clusters.
func (f *fixture) client(node string, delta bool) *xdstest.Client {
	f.Helper()
	return f.clientOf(f.conn, node, delta)
}

func (f *fixture) clientOf(conn grpc.ClientConnInterface, node string, delta bool) *xdstest.Client {
	f.Helper()
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Node: &core.Node{Id: node}, Delta: delta})
	f.Cleanup(client.Close)
	if err := client.Connect(context.WithoutCancel(f.Context())); err != nil {
		f.Fatal(err)
	}
	if err := client.Subscribe(envoy.ClusterType); err != nil {
		f.Fatal(err)
	}
	return client
}

func (f *fixture) await(client *xdstest.Client, typeURL string, want ...string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	if err := client.Await(ctx, func(s xdstest.State) bool { return slices.Equal(s.Names(typeURL), want) }); err != nil {
		f.Fatalf("resources %v, want %v: %v", client.State().Names(typeURL), want, err)
	}
}

func cluster(name string) snapshots.Resource {
	return snapshots.Resource{Name: name, Message: &clusterv3.Cluster{Name: name}}
}

func route(name string) snapshots.Resource {
	return snapshots.Resource{Name: name, Message: &routev3.RouteConfiguration{Name: name}}
}

// TestSet: each node has its own resources, and a set replaces the one before it as a whole.
func TestSet(t *testing.T) {
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			must(t, f.nodes.Set("a", cluster("blue"), cluster("green")), f.nodes.Set("b", cluster("red")))
			a, b, late := f.client("a", delta), f.client("b", delta), f.client("late", delta)
			f.await(a, envoy.ClusterType, "blue", "green")
			f.await(b, envoy.ClusterType, "red")
			must(t, a.Subscribe(envoy.RouteType, "web"), f.nodes.Set("a", cluster("green"), cluster("new"), route("web")))
			f.await(a, envoy.ClusterType, "green", "new")
			f.await(a, envoy.RouteType, "web")
			must(t, f.nodes.Set("late", cluster("yellow")))
			f.await(late, envoy.ClusterType, "yellow")
			if n := len(late.Responses()); n != 1 {
				t.Errorf("a node that had no set got %d responses, want 1", n)
			}
			f.nodes.Delete("a")
			f.await(a, envoy.ClusterType)
			f.await(b, envoy.ClusterType, "red")
			if responses := slices.DeleteFunc(b.Responses(), func(r xdstest.Response) bool { return r.TypeURL != envoy.ClusterType }); len(responses) != 1 {
				t.Errorf("the other node got %d responses, want 1", len(responses))
			}
		})
	}
}

// server is the connection to the present server of a client.
type server struct{ grpc.ClientConnInterface }

// TestRestart: a client that comes from another server keeps its resources until its node has a set.
func TestRestart(t *testing.T) {
	for name, delta := range map[string]bool{"SotW": false, "delta": true} {
		t.Run(name, func(t *testing.T) {
			before, after := newFixture(t), newFixture(t)
			at := &server{before.conn}
			client := before.clientOf(at, "edge", delta)
			must(t, before.nodes.Set("edge", cluster("blue")))
			before.await(client, envoy.ClusterType, "blue")
			at.ClientConnInterface = after.conn
			must(t, after.server.Flush(t.Context()), client.Connect(context.WithoutCancel(t.Context())))
			<-after.first
			must(t, after.nodes.Set("edge", cluster("blue"), cluster("green")))
			after.await(client, envoy.ClusterType, "blue", "green")
			if n := len(client.Responses()); n != 2 {
				t.Errorf("got %d responses from the two servers, want 2", n)
			}
		})
	}
}

// TestOptional: with Optional, a node without a set is answered.
func TestOptional(t *testing.T) {
	f := newFixture(t, snapshots.Options{Optional: true})
	must(t, f.server.SetResource("own", cluster("own").Message))
	f.await(f.client("edge", true), envoy.ClusterType, "own")
}

// TestInvalid: a set with an invalid resource changes nothing, and its error names the resource.
func TestInvalid(t *testing.T) {
	f := newFixture(t)
	must(t, f.nodes.Set("a", cluster("blue")))
	bad := snapshots.Resource{Name: "bad", Message: &clusterv3.Cluster{Name: "bad", ConnectTimeout: durationpb.New(-time.Second)}}
	for want, resources := range map[string][]snapshots.Resource{
		`set node "a": `:                 {cluster("green"), bad},
		"ConnectTimeout":                 {bad},
		`Cluster "blue" is there twice`:  {cluster("blue"), cluster("blue")},
		`resource "none"`:                {{Name: "none"}},
		`the name in the message is "x"`: {{Name: "y", Message: &clusterv3.Cluster{Name: "x"}}},
	} {
		if err := f.nodes.Set("a", resources...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f.await(f.client("a", true), envoy.ClusterType, "blue")
}

// TestKey: nodes with one key share a set.
func TestKey(t *testing.T) {
	f := newFixture(t, snapshots.Options{Key: func(n *core.Node) string { return strings.Split(n.GetId(), "-")[0] }})
	must(t, f.nodes.Set("edge", cluster("blue")))
	f.await(f.client("edge-1", true), envoy.ClusterType, "blue")
	f.await(f.client("edge-2", false), envoy.ClusterType, "blue")
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestManySets: a push of many sets asks once for each view and type. It does not ask for each resource of each set.
func TestManySets(t *testing.T) {
	nodes := snapshots.New()
	must(t, nodes.Set("a", cluster("blue")), nodes.Set("b", cluster("red")), nodes.Set("c", route("web")))
	nodes.Provide(nil)
	must(t, nodes.Set("a", cluster("green")), nodes.Set("c"))
	nodes.Delete("b")
	_, changes := nodes.Provide(nil)
	var changed []string
	for _, node := range []string{"a", "b", "c", "d"} {
		for _, typeURL := range []string{envoy.ClusterType, envoy.RouteType} {
			if changes.Everything(ads.View{Policy: node}, typeURL) {
				changed = append(changed, node+" "+typeURL[strings.LastIndex(typeURL, ".")+1:])
			}
		}
	}
	if want := []string{"a Cluster", "b Cluster", "c RouteConfiguration"}; !slices.Equal(changed, want) || len(changes.Names) > 0 {
		t.Errorf("changed %v, want %v; %d names", changed, want, len(changes.Names))
	}
	if _, changes = nodes.Provide(nil); changes.Everything != nil {
		t.Error("there is a change without a change")
	}
}
