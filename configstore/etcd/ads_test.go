// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// serve runs a control plane over a replica, and returns a connection to it.
func serve(t *testing.T, r *replica) *grpc.ClientConn {
	t.Helper()
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(r)}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(r, updater) })
	g := grpc.NewServer(ads.ServerOptions()...)
	server.Register(g)
	conn, _ := testserver.ServeMemory(t, g, registries.Run, server.Run)
	r.run(t)
	eventually(t, "the replica has synced", r.HasSynced)
	return conn
}

// movingConn is a connection to one of several servers.
type movingConn struct{ grpc.ClientConnInterface }

// subscribed returns a client that has received clusters and their endpoints.
func subscribed(t *testing.T, conn grpc.ClientConnInterface, clusters int) *xdstest.Client {
	t.Helper()
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true})
	t.Cleanup(client.Close)
	ctx := within(t)
	if err := client.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	if err := client.Subscribe(envoy.ClusterType); err != nil {
		t.Fatal(err)
	}
	has := func(typeURL string, clusters int) {
		t.Helper()
		if err := client.Await(ctx, func(s xdstest.State) bool { return len(s.Names(typeURL)) == clusters }); err != nil {
			t.Fatalf("%v: %q", err, client.State().Names(typeURL))
		}
	}
	has(envoy.ClusterType, clusters+2) // including the clusters for unknown and for rejected hosts
	names := slices.DeleteFunc(client.State().Names(envoy.ClusterType), func(name string) bool { return !strings.HasPrefix(name, "outbound|") })
	if err := client.Subscribe(envoy.LoadAssignmentType, names...); err != nil {
		t.Fatal(err)
	}
	has(envoy.LoadAssignmentType, clusters)
	return client
}

func versions(s xdstest.State) map[string]string {
	out := map[string]string{}
	for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
		for name, r := range s.Resources(typeURL) {
			out[typeURL+" "+name] = r.Version
		}
	}
	return out
}

// TestServers: the servers of two replicas send equal versions, so that a client that moves from
// one to the other receives only later changes.
func TestServers(t *testing.T) {
	t.Parallel()
	srv, prefix := shared.get(t)
	a, b := newReplica(t, srv.addr, etcd.Options{Prefix: prefix}), newReplica(t, srv.addr, etcd.Options{Prefix: prefix})
	const services = 20
	for i := range services {
		a.create(t, entry(fmt.Sprint("s", i), fmt.Sprintf("10.0.0.%d", i)))
	}
	connA, connB := serve(t, a), serve(t, b)
	for i := range services / 2 { // some of them in a life, and not in a list
		a.update(t, entry(fmt.Sprint("s", i), fmt.Sprintf("10.0.1.%d", i)))
	}
	b.awaits(t, fmt.Sprint("s", services/2-1), fmt.Sprintf("10.0.1.%d", services/2-1))
	conn := &movingConn{connA}
	moving, staying := subscribed(t, conn, services), subscribed(t, connB, services)
	ctx := within(t)
	if err := moving.Await(ctx, func(s xdstest.State) bool { return cmp.Equal(versions(s), versions(staying.State())) }); err != nil {
		t.Fatalf("the servers send other versions (-one +other):\n%s", cmp.Diff(versions(moving.State()), versions(staying.State())))
	}
	moving.Close()
	seen := len(moving.Responses())
	conn.ClientConnInterface = connB
	if err := moving.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	a.create(t, entry("new", "10.0.0.1"))
	if err := moving.Await(ctx, func(s xdstest.State) bool { return s.Has(envoy.ClusterType, "outbound|80||new.example.com") }); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, r := range moving.Responses()[seen:] {
		sent = append(append(sent, r.Names()...), r.Removed...)
	}
	if want := []string{"outbound|80||new.example.com"}; !slices.Equal(sent, want) {
		t.Errorf("the client that has moved was sent %q, want %q", sent, want)
	}
}
