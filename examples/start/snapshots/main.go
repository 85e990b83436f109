// SPDX-License-Identifier: Apache-2.0

// Command snapshots serves xDS resources that it makes itself, a set for each node, and shows what
// two nodes receive.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/snapshots"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func cluster(name string) snapshots.Resource {
	return snapshots.Resource{Name: name, Message: &clusterv3.Cluster{Name: name}}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nodes := snapshots.New()
	server := ads.New(nil, ads.Options{Providers: []ads.Provider{nodes}})
	address, stop := serve(ctx, server)
	defer stop()

	check(nodes.Set("edge-1", cluster("blue"), cluster("green")))
	check(nodes.Set("edge-2", cluster("blue")))
	show(ctx, address, "edge-1", "blue", "green")
	show(ctx, address, "edge-2", "blue")
	check(nodes.Set("edge-1", cluster("green"))) // the complete set: blue is removed
	show(ctx, address, "edge-1", "green")

	invalid := &clusterv3.Cluster{Name: "red", ConnectTimeout: durationpb.New(-time.Second)}
	err := nodes.Set("edge-1", snapshots.Resource{Name: "red", Message: invalid})
	fmt.Println("rejected:", err != nil)
	show(ctx, address, "edge-1", "green")
}

// serve serves xDS on a free port until stop is called.
func serve(ctx context.Context, server *ads.Server) (address string, stop func()) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	ended, pushed := make(chan struct{}), make(chan struct{})
	go func() { _ = grpcServer.Serve(listener) }() // it returns when it is stopped
	go func() { defer close(pushed); server.Run(ended) }()
	return listener.Addr().String(), func() {
		grpcServer.Stop()
		close(ended)
		<-pushed
	}
}

// show connects as a node, which an Envoy or a gRPC client would do, until it has these clusters.
func show(ctx context.Context, address, node string, want ...string) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer conn.Close()
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Node: &core.Node{Id: node}, Delta: true})
	defer client.Close()
	check(client.Connect(ctx))
	check(client.Subscribe(envoy.ClusterType))
	check(client.Await(ctx, func(s xdstest.State) bool { return slices.Equal(s.Names(envoy.ClusterType), want) }))
	fmt.Println(node, client.State().Names(envoy.ClusterType))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
