// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"log/slog"
	"net"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/examples/start/extension"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestClient: a client receives the cluster of an entry with the rule of the extension.
func TestClient(t *testing.T) {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	extension.Protect(configs, slog.New(slog.NewTextHandler(t.Output(), nil)))
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(configs)}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	entries := configstore.Typed[*networking.ServiceEntry](configs)
	if _, err := entries.Create(configstore.NewConfig("bank", "shop", &networking.ServiceEntry{
		Hosts: []string{"bank.example.com"}, Location: networking.ServiceEntry_MESH_EXTERNAL,
		Ports:      []*networking.ServicePort{{Number: 443, Name: "tls", Protocol: "TLS"}},
		Resolution: networking.ServiceEntry_DNS,
	})); err != nil {
		t.Fatal(err)
	}
	configs.Drain()

	const name = "outbound|443||bank.example.com"
	client := xdstest.NewClient(serve(t, server), xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"}})
	defer client.Close()
	if err := client.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client.Subscribe(envoy.ClusterType); err != nil {
		t.Fatal(err)
	}
	if err := client.Await(t.Context(), func(s xdstest.State) bool { return s.Has(envoy.ClusterType, name) }); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.State().Resources(envoy.ClusterType)[name].Message()
	if n := cluster.(*clusterv3.Cluster).GetOutlierDetection().GetConsecutive_5Xx().GetValue(); err != nil || n != 5 {
		t.Errorf("after %d errors, %v, of %v", n, err, cluster)
	}
}

// serve returns a connection to a server that runs until the test ends.
func serve(t *testing.T, server *ads.Server) *grpc.ClientConn {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); server.Run(stop) }()
	go func() { _ = grpcServer.Serve(listener) }() // it returns when it is stopped
	t.Cleanup(func() {
		_ = conn.Close()
		grpcServer.Stop()
		close(stop)
		<-stopped
	})
	return conn
}
