// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// rawCodec passes bytes, so that clients cost next to nothing.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

// discardCodec is rawCodec for a server that does not decode requests: the message is copied
// together, as gRPC's own codec does.
type discardCodec struct{}

func (discardCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (discardCodec) Unmarshal(data mem.BufferSlice, _ any) error {
	data.MaterializeToBuffer(mem.DefaultBufferPool()).Free()
	return nil
}
func (discardCodec) Name() string { return "proto" }

// rawClient is a client that scans responses only for the fields that an ACK needs.
type rawClient struct {
	stream  grpc.ClientStream
	delta   bool
	typeURL string
	names   []string
	message []byte // received last
}

const (
	sotwMethod  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	deltaMethod = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

func dialRaw(b *testing.B, address, method string) grpc.ClientStream {
	b.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	return stream
}

func (c *rawClient) send(b *testing.B, m proto.Message) {
	b.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.stream.SendMsg(&data); err != nil {
		b.Fatal(err)
	}
}

// subscribe asks for names, or everything, and takes n resources.
func (c *rawClient) subscribe(b *testing.B, n int) {
	b.Helper()
	if c.delta {
		c.send(b, &discovery.DeltaDiscoveryRequest{Node: node("a", "shop"), TypeUrl: c.typeURL, ResourceNamesSubscribe: c.names})
	} else {
		c.send(b, &discovery.DiscoveryRequest{Node: node("a", "shop"), TypeUrl: c.typeURL, ResourceNames: c.names})
	}
	for n > 0 {
		n -= max(1, c.receive(b))
	}
}

// receive takes a response and accepts it. It returns the number of resources.
func (c *rawClient) receive(tb testing.TB) (resources int) {
	tb.Helper()
	if err := c.stream.RecvMsg(&c.message); err != nil {
		tb.Error(err)
		return 0
	}
	var version, nonce string
	for data := c.message; len(data) > 0; {
		number, kind, n := protowire.ConsumeTag(data)
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, kind, data)
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			switch {
			case number == 5:
				nonce = string(value)
			case number == 2:
				resources++
			case number == 1 && !c.delta:
				version = string(value)
			}
		}
		data = data[size:]
	}
	var ack []byte
	if c.delta {
		ack = appendString(appendString(nil, 2, c.typeURL), 6, nonce)
	} else {
		ack = appendString(nil, 1, version)
		for _, name := range c.names {
			ack = appendString(ack, 3, name)
		}
		ack = appendString(appendString(ack, 4, c.typeURL), 5, nonce)
	}
	if err := c.stream.SendMsg(&ack); err != nil {
		tb.Error(err)
	}
	return resources
}

func appendString(b []byte, number protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

// benchEndpoints are five endpoints with the fields of real ones.
func benchEndpoints(version int) []*registry.Endpoint {
	var out []*registry.Endpoint
	for i := range 5 {
		out = append(out, &registry.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, version%250)}, EndpointPort: 8080, ServicePortName: "grpc",
			HealthStatus: registry.Healthy, WorkloadName: "workload", Shared: &registry.EndpointAttributes{
				Namespace: "shop", Locality: "region/zone/subzone", TLSMode: "istio", ClusterID: "c1", LbWeight: 1,
				Labels: registry.Labels{"service.istio.io/canonical-name": "workload", "service.istio.io/canonical-revision": "v1"},
			},
		})
	}
	return out
}

// benchServer has n services with endpoints.
func benchServer(b *testing.B, n int, options ...ads.Options) (*fixture, []string) {
	b.Helper()
	list, names := make([]*registry.Service, n), make([]string, n)
	for i := range list {
		host := fmt.Sprintf("service-%05d.example.com", i)
		list[i], names[i] = service(host, "shop"), cluster(host)
	}
	f := serve(b, append(options, ads.Options{})[0], list...)
	for _, s := range list {
		f.EDSCacheUpdate(shard, s.Hostname, "shop", benchEndpoints(0))
	}
	f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	f.flush()
	return f, names
}

// BenchmarkEndpointChange: one endpoint of one service changes, until all
// clients have it; the next one follows at once.
// The limit is BenchmarkLimitPush.
func BenchmarkEndpointChange(b *testing.B) {
	for _, protocol := range []string{"delta", "sotw"} {
		for _, names := range []string{"one", "all"} {
			for _, n := range []int{1_000, 10_000} {
				for _, clients := range []int{1, 100} {
					if clients > 1 && (names == "all" && protocol == "sotw") {
						continue // the ACKs of SotW carry all names
					}
					b.Run(fmt.Sprintf("%s/names=%s/n=%d/clients=%d", protocol, names, n, clients), func(b *testing.B) {
						benchEndpointChange(b, protocol == "delta", names == "all", n, clients)
					})
				}
			}
		}
	}
}

func benchEndpointChange(b *testing.B, delta, all bool, n, clients int) {
	b.Helper()
	f, names := benchServer(b, n)
	const host = "service-00007.example.com"
	if !all {
		names = []string{cluster(host)}
	}
	old := benchEndpoints(0)
	f.eds(host, "shop", old...)
	f.flush()
	method := sotwMethod
	if delta {
		method = deltaMethod
	}
	var list []*rawClient
	for range clients {
		c := &rawClient{
			stream: dialRaw(b, f.listener.Addr().String(), method), delta: delta,
			typeURL: envoy.LoadAssignmentType, names: names,
		}
		c.subscribe(b, len(names))
		list = append(list, c)
	}
	f.waitApplied()
	spare := benchEndpoints(1)
	b.ReportAllocs()
	defer cputime.Report(b, "op", 1)()
	for i := 0; b.Loop(); i++ {
		f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
		old[0], spare[0] = spare[0], old[0]
		receiveAll(b, list)
	}
}

func receiveAll(b *testing.B, list []*rawClient) {
	b.Helper()
	if len(list) == 1 {
		list[0].receive(b)
		return
	}
	var all sync.WaitGroup
	for _, c := range list {
		all.Go(func() { c.receive(b) })
	}
	all.Wait()
}

// BenchmarkClusterChange: a service changes, until a client with a wildcard
// subscription has the cluster.
func BenchmarkClusterChange(b *testing.B) {
	for _, n := range []int{1_000, 5_000, 10_000} {
		b.Run(fmt.Sprintf("delta/n=%d", n), func(b *testing.B) { benchClusterChange(b, n) })
	}
}

func benchClusterChange(b *testing.B, n int) {
	b.Helper()
	f, _ := benchServer(b, n, ads.Options{})
	c := &rawClient{stream: dialRaw(b, f.listener.Addr().String(), deltaMethod), delta: true, typeURL: envoy.ClusterType}
	c.subscribe(b, n)
	f.waitApplied()
	list := append([]*registry.Service(nil), f.services.Services()...)
	host := string(list[7].Hostname)
	states := []*registry.Service{service(host, "shop"), service(host, "shop")}
	states[0].ServiceAccounts = []string{"spiffe://a"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		// The copy of the list is the registry's, not the server's.
		b.StopTimer()
		next := append([]*registry.Service(nil), list...)
		next[7] = states[i%2]
		f.services.mu.Lock()
		f.services.list = next
		f.services.mu.Unlock()
		b.StartTimer()
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(registry.Hostname(host), "shop"))})
		c.receive(b)
	}
}

// BenchmarkLimitPush is the limit of both: a ready message over a gRPC stream,
// and an ACK.
func BenchmarkLimitPush(b *testing.B) {
	for _, clients := range []int{1, 100} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchLimitPush(b, clients) })
	}
}

func benchLimitPush(b *testing.B, clients int) {
	b.Helper()
	address, opened := limitServer(b, []byte(strings.Repeat("x", 1050)))
	ack := []byte("ack")
	var streams []grpc.ClientStream
	var pushes []chan<- struct{}
	for range clients {
		s := dialRaw(b, address, "/limit/Push")
		if err := s.SendMsg(&ack); err != nil {
			b.Fatal(err)
		}
		streams = append(streams, s)
		pushes = append(pushes, <-opened)
	}
	receive := func(s grpc.ClientStream) {
		var data []byte
		if err := s.RecvMsg(&data); err != nil {
			b.Error(err)
		}
		if err := s.SendMsg(&ack); err != nil {
			b.Error(err)
		}
	}
	b.ReportAllocs()
	defer cputime.Report(b, "op", 1)()
	for b.Loop() {
		for _, p := range pushes {
			p <- struct{}{}
		}
		if clients == 1 {
			receive(streams[0])
			continue
		}
		var all sync.WaitGroup
		for _, s := range streams {
			all.Go(func() { receive(s) })
		}
		all.Wait()
	}
}

// limitServer sends a ready message for each token in the channel of a stream, and
// takes an ACK, which it does not look at. It waits for a first request.
func limitServer(b *testing.B, message []byte) (address string, opened <-chan chan<- struct{}) {
	b.Helper()
	pushes := make(chan chan<- struct{}, 100)
	server := grpc.NewServer(grpc.ForceServerCodecV2(discardCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		var ack []byte
		if err := s.RecvMsg(&ack); err != nil {
			return err
		}
		mine := make(chan struct{}, 1)
		pushes <- mine
		for {
			select {
			case <-mine:
			case <-s.Context().Done():
				return nil
			}
			if err := s.SendMsg(&message); err != nil {
				return err
			}
			if err := s.RecvMsg(&ack); err != nil {
				return err
			}
		}
	}))
	listener := listen(b)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	b.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return listener.Addr().String(), pushes
}

// dialClient opens a connection for raw streams.
func dialClient(tb testing.TB, address string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// newRawStream opens a raw stream on a connection.
func newRawStream(tb testing.TB, conn *grpc.ClientConn, method string) grpc.ClientStream {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		tb.Fatal(err)
	}
	return stream
}

// openRaw opens a raw stream on a connection of its own.
func openRaw(tb testing.TB, address string, delta bool) *rawClient {
	tb.Helper()
	method := sotwMethod
	if delta {
		method = deltaMethod
	}
	return &rawClient{stream: newRawStream(tb, dialClient(tb, address), method), delta: delta}
}
