// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// server serves load assignments.
type server struct {
	name string
	// start serves n resources on a listener until stop is called. Set changes one of them.
	start func(l net.Listener, n int) (set func(i, version int), stop func())
}

func servers() []server {
	return []server{
		{"pilotkit", servePilotkit},
		{"go-control-plane LinearCache", func(l net.Listener, n int) (func(i, version int), func()) { return serveLinear(l, n, false) }},
		{"go-control-plane MuxCache of a LinearCache", func(l net.Listener, n int) (func(i, version int), func()) { return serveLinear(l, n, true) }},
		{"go-control-plane SnapshotCache", serveSnapshots},
	}
}

func serveRows() []row {
	change := func(clients int) row {
		return row{
			name: fmt.Sprintf("Serving: one of n resources changes, until %d clients of all have it", clients), sizes: []int{1_000, 10_000},
			about: "Load assignments of the program's own, incremental protocol, clients in the same process. SnapshotCache is given a new\n" +
				"snapshot of everything, because it has no smaller change.",
			of: func(n int) (out []subject) {
				for _, s := range servers() {
					out = append(out, subject{s.name, func(b *testing.B) { benchChange(b, s, n, clients) }})
				}
				return out
			},
		}
	}
	return []row{change(1), change(100), {
		name: "Serving: a client connects, until it has all n resources", sizes: []int{1_000, 10_000},
		of: func(n int) (out []subject) {
			for _, s := range servers() {
				out = append(out, subject{s.name, func(b *testing.B) { benchConnect(b, s, n) }})
			}
			return out
		},
	}}
}

func assignment(i, version int) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: nameOf(i), Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: fmt.Sprintf("10.0.%d.%d", version/250%250, version%250+1), PortSpecifier: &core.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}},
	}}}
}

// undelayed makes pilotkit push as soon as the push before has ended, like its peers.
func undelayed() xdsupdate.Debounce {
	return xdsupdate.Debounce{After: -1, EndpointInterval: -1}
}

func servePilotkit(l net.Listener, n int) (set func(i, version int), stop func()) {
	s := ads.New(nil, ads.Options{Debounce: undelayed()})
	s.UpdateResources(func(w ads.ResourceWriter) {
		for i := range n {
			check(w.SetResource(nameOf(i), assignment(i, 0)))
		}
	})
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); s.Run(end) }()
	check(s.Flush(context.Background()))
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	s.Register(grpcServer)
	stopped := serveUntil(grpcServer, l)
	return func(i, version int) { check(s.SetResource(nameOf(i), assignment(i, version))) }, func() { stopped(); close(end); <-ended }
}

func serveLinear(l net.Listener, n int, mux bool) (set func(i, version int), stop func()) {
	resources := make(map[string]types.Resource, n)
	for i := range n {
		resources[nameOf(i)] = assignment(i, 0)
	}
	linear := xdscache.NewLinearCache(envoy.LoadAssignmentType, xdscache.WithInitialResources(resources))
	var cache xdscache.Cache = linear
	if mux {
		cache = &xdscache.MuxCache{
			Classify:      func(*xdscache.Request) string { return "" },
			ClassifyDelta: func(*xdscache.DeltaRequest) string { return "" },
			Caches:        map[string]xdscache.Cache{"": linear},
		}
	}
	return func(i, version int) { check(linear.UpdateResource(nameOf(i), assignment(i, version))) }, servePeer(l, cache)
}

func serveSnapshots(l net.Listener, n int) (set func(i, version int), stop func()) {
	cache := xdscache.NewSnapshotCache(true, xdscache.IDHash{}, nil)
	resources := make([]types.Resource, n)
	for i := range n {
		resources[i] = assignment(i, 0)
	}
	apply := func(version int) {
		snapshot := must(xdscache.NewSnapshot(strconv.Itoa(version), map[string][]types.Resource{envoy.LoadAssignmentType: resources}))
		check(cache.SetSnapshot(context.Background(), nodeID, snapshot))
	}
	apply(0)
	return func(i, version int) {
		resources[i] = assignment(i, version)
		apply(version)
	}, servePeer(l, cache)
}

func servePeer(l net.Listener, cache xdscache.Cache) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	grpcServer := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer, serverv3.NewServer(ctx, cache, nil))
	stopped := serveUntil(grpcServer, l)
	return func() { cancel(); stopped() }
}

// serveUntil serves a listener until stop is called.
func serveUntil(s *grpc.Server, l net.Listener) (stop func()) {
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	return func() { s.Stop(); <-ended }
}

const nodeID = "sidecar~10.0.0.1~app.shop~shop.svc.cluster.local"

// client is a client of the incremental protocol.
type client struct {
	conn   *grpc.ClientConn
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func dial(address string, names ...string) *client {
	conn := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30))))
	c := &client{conn, must(discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(context.Background()))}
	check(c.stream.Send(&discovery.DeltaDiscoveryRequest{Node: &core.Node{Id: nodeID}, TypeUrl: envoy.LoadAssignmentType, ResourceNamesSubscribe: names}))
	return c
}

// receive accepts responses until they have so many resources.
func (c *client) receive(resources int) {
	for got := 0; got < resources; {
		r := must(c.stream.Recv())
		got += len(r.GetResources())
		check(c.stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}))
	}
}

func (c *client) close() { check(c.conn.Close()) }

func listen() net.Listener {
	return must(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
}

func benchChange(b *testing.B, s server, n, number int) {
	b.Helper()
	l := listen()
	set, stop := s.start(l, n)
	clients := make([]*client, number)
	for i := range clients {
		clients[i] = dial(l.Addr().String(), "*")
		clients[i].receive(n)
	}
	received := make(chan struct{}, number)
	changes := make([]chan struct{}, number)
	for i, c := range clients {
		changes[i] = make(chan struct{})
		go func() {
			for range changes[i] {
				c.receive(1)
				received <- struct{}{}
			}
		}()
	}
	b.ReportAllocs()
	version := 0
	for b.Loop() {
		version++
		for _, c := range changes {
			c <- struct{}{}
		}
		set(version%n, version)
		for range number {
			<-received
		}
	}
	for i, c := range clients {
		close(changes[i])
		c.close()
	}
	stop()
}

func benchConnect(b *testing.B, s server, n int) {
	b.Helper()
	l := listen()
	_, stop := s.start(l, n)
	b.ReportAllocs()
	for b.Loop() {
		c := dial(l.Addr().String(), "*")
		c.receive(n)
		c.close()
	}
	stop()
}
