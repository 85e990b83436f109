// SPDX-License-Identifier: Apache-2.0

// Command multicluster joins the registries of three clusters that run the same service. One is
// replaced and one removed while a client is connected, and the client is never without an endpoint
// of the cluster that stays.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const cart = "outbound|80||cart.example.com"

// cluster returns a registry with one endpoint of the service. A cluster of Kubernetes would be
// registry/kube instead, and registry/kube/multicluster follows the Secrets that name clusters.
func cluster(id registry.ClusterID, address string) func(xdsupdate.XDSUpdater) registry.Instance {
	return func(updater xdsupdate.XDSUpdater) registry.Instance {
		r := memory.New(memory.Options{Cluster: id, Updater: updater})
		check(r.Set(&registry.Service{
			Hostname:   "cart.example.com",
			Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
			Attributes: registry.ServiceAttributes{Namespace: "shop"},
		}, []*registry.Endpoint{{Addresses: []string{address}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http"}}))
		return r
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clusters := aggregate.NewController()
	server := ads.New(clusters)
	clusters.AddRegistry(cluster("east", "10.1.0.1"))
	clusters.AddRegistry(cluster("west", "10.2.0.1"))
	clusters.AddRegistry(cluster("north", "10.3.0.1"))
	address, stop := serve(ctx, clusters, server)
	defer stop()

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer conn.Close()
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~10.9.0.1~web.shop~shop.svc.cluster.local"}, Delta: true})
	defer client.Close()
	check(client.Connect(ctx))
	check(client.Subscribe(envoy.LoadAssignmentType, cart))
	follow := func(step string, want ...string) {
		check(client.Await(ctx, func(s xdstest.State) bool {
			return slices.Equal(addresses(s.Resources(envoy.LoadAssignmentType)[cart]), want)
		}))
		fmt.Println(step, want)
	}

	follow("three clusters", "10.1.0.1", "10.2.0.1", "10.3.0.1")
	clusters.UpdateRegistry(cluster("west", "10.2.0.9")) // new credentials, or another API server
	follow("west is replaced", "10.1.0.1", "10.2.0.9", "10.3.0.1")
	clusters.DeleteRegistry("north", registry.Memory)
	follow("north is removed", "10.1.0.1", "10.2.0.9")
	for _, r := range client.Responses() {
		for _, resource := range r.Resources {
			if !slices.Contains(addresses(resource), "10.1.0.1") {
				fmt.Println("a client was without east:", addresses(resource))
			}
		}
	}
}

// addresses returns the addresses of a load assignment, sorted.
func addresses(r xdstest.Resource) (out []string) {
	message, err := r.Message()
	if err != nil {
		return nil
	}
	assignment, _ := message.(*endpointv3.ClusterLoadAssignment)
	for _, l := range assignment.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			out = append(out, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(out)
	return out
}

// serve serves xDS on a free port until stop is called.
func serve(ctx context.Context, clusters *aggregate.Controller, server *ads.Server) (address string, stop func()) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	ended, pushed, ran := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { _ = grpcServer.Serve(listener) }() // it returns when it is stopped
	go func() { defer close(ran); clusters.Run(ended) }()
	go func() { defer close(pushed); server.Run(ended) }()
	return listener.Addr().String(), func() {
		grpcServer.Stop()
		close(ended)
		<-pushed
		<-ran
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
