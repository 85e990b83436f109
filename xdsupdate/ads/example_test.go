// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// A server of one service, and a client that follows its endpoints. Here the host itself reports
// the endpoints to the server, as a registry would.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	discovery := &services{} // any registry.ServiceDiscovery
	discovery.set(&registry.Service{
		Hostname:   "api.example.com",
		Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
		Attributes: registry.ServiceAttributes{Namespace: "shop"},
	})

	server := ads.New(discovery, ads.Options{})
	grpcServer := grpc.NewServer(grpc.ForceServerCodecV2(ads.Codec()))
	server.Register(grpcServer)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { server.Run(stop) })
	running.Go(func() { _ = grpcServer.Serve(listener) })

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true})
	if err := client.Connect(ctx); err != nil {
		log.Fatal(err)
	}
	name := envoy.ClusterName(80, "api.example.com")
	if err := client.Subscribe(envoy.LoadAssignmentType, name); err != nil {
		log.Fatal(err)
	}
	server.EDSUpdate(xdsupdate.ShardKey{Provider: registry.Memory}, "api.example.com", "shop", []*registry.Endpoint{
		{Addresses: []string{"10.0.0.1"}, EndpointPort: 8080, ServicePortName: "grpc"},
	})
	err = client.Await(ctx, func(s xdstest.State) bool {
		m, err := s.Resources(envoy.LoadAssignmentType)[name].Message()
		if err != nil {
			return false
		}
		for _, l := range m.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
			fmt.Println(name, l.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			return true
		}
		return false
	})
	if err != nil {
		log.Fatal(err)
	}

	client.Close()
	_ = conn.Close()
	close(stop)
	grpcServer.Stop()
	running.Wait()
	// Output: outbound|80||api.example.com 10.0.0.1
}

// A server of resources that the program sets, without a registry, as a replacement for a cache of
// go-control-plane.
func ExampleServer_SetResource() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := ads.New(nil)
	grpcServer := grpc.NewServer(grpc.ForceServerCodecV2(ads.Codec()))
	server.Register(grpcServer)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { server.Run(stop) })
	running.Go(func() { _ = grpcServer.Serve(listener) })

	// Resources that belong together are set in one step: no client is sent only some of them.
	server.UpdateResources(func(w ads.ResourceWriter) {
		for _, name := range []string{"blue", "green"} {
			if err := w.SetResource(name, &clusterv3.Cluster{Name: name}); err != nil {
				log.Fatal(err)
			}
		}
	})
	// An invalid resource is rejected, and the last good state stays.
	err = server.SetResource("blue", &clusterv3.Cluster{Name: "blue", ConnectTimeout: durationpb.New(-time.Second)})
	fmt.Println(err != nil)

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true})
	if err := client.Connect(ctx); err != nil {
		log.Fatal(err)
	}
	if err := client.Subscribe(envoy.ClusterType); err != nil { // all of them
		log.Fatal(err)
	}
	if err := client.Await(ctx, func(s xdstest.State) bool { return s.Has(envoy.ClusterType, "blue", "green") }); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.State().Names(envoy.ClusterType))

	client.Close()
	_ = conn.Close()
	close(stop)
	grpcServer.Stop()
	running.Wait()
	// Output:
	// true
	// [blue green]
}
