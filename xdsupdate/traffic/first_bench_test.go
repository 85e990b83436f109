// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"fmt"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// BenchmarkFirst measures the answers to the first proxy of a kind, with everything to be built, of
// 10,000 services with a VirtualService and two subsets each: 30,000 clusters and load assignments,
// and one route configuration. The client only counts what it receives.
func BenchmarkFirst(b *testing.B) {
	for _, kind := range []string{"sidecar", "router"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			var cpu float64
			for b.Loop() {
				b.StopTimer()
				x := newBench(b, false)
				if err := x.server.Flush(b.Context()); err != nil {
					b.Fatal(err)
				}
				before := cputime.Used()
				b.StartTimer()
				x.first(kind)
				b.StopTimer()
				cpu += float64(cputime.Used() - before)
				b.StartTimer()
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-ns/op")
		})
	}
}

// first connects a proxy that subscribes to everything of its kind, until it has all of it.
func (x *bench) first(kind string) {
	c := x.counter(fmt.Sprintf("%s~10.200.0.1~p.ingress~x", kind))
	c.take(envoy.ClusterType, 3*benchSize)
	c.take(envoy.LoadAssignmentType, 3*benchSize)
	if kind == "router" {
		c.take(envoy.ListenerType, 2)
		c.take(envoy.RouteType, 1, "http.80")
		return
	}
	c.take(envoy.RouteType, 1, "80")
}

// counter is a client that counts the resources that it receives, and accepts them.
type counter struct {
	b      *testing.B
	stream grpc.ClientStream
	node   *core.Node
}

// bytesCodec passes bytes, so that the client costs little.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append((*v.(*[]byte))[:0], data...)
	return nil
}
func (bytesCodec) Name() string { return "proto" }

func (x *bench) counter(id string) *counter {
	ctx, cancel := context.WithCancel(context.Background())
	x.b.Cleanup(cancel)
	stream, err := x.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources", grpc.ForceCodec(bytesCodec{}))
	if err != nil {
		x.b.Fatal(err)
	}
	return &counter{x.b, stream, &core.Node{Id: id, Metadata: benchMetadata(x.b, "ingress", map[string]any{"app": "edge"})}}
}

// take subscribes to a type, by wildcard without names, and receives n resources of it.
func (c *counter) take(typeURL string, n int, names ...string) {
	c.send(&discovery.DeltaDiscoveryRequest{Node: c.node, TypeUrl: typeURL, ResourceNamesSubscribe: append(names, "*")[:max(1, len(names))]})
	c.node = nil
	var message []byte
	for n > 0 {
		if err := c.stream.RecvMsg(&message); err != nil {
			c.b.Fatal(err)
		}
		ack := &discovery.DeltaDiscoveryRequest{}
		for data := message; len(data) > 0; {
			field, _, size := protowire.ConsumeField(data)
			_, _, tag := protowire.ConsumeTag(data)
			value, _ := protowire.ConsumeBytes(data[tag:])
			switch field {
			case 2:
				n--
			case 4:
				ack.TypeUrl = string(value)
			case 5:
				ack.ResponseNonce = string(value)
			default:
			}
			data = data[size:]
		}
		if ack.GetTypeUrl() != typeURL {
			c.b.Fatalf("received %s while waiting for %s", ack.GetTypeUrl(), typeURL)
		}
		c.send(ack)
	}
}

func (c *counter) send(m proto.Message) {
	data, err := proto.Marshal(m)
	if err != nil {
		c.b.Fatal(err)
	}
	if err := c.stream.SendMsg(&data); err != nil {
		c.b.Fatal(err)
	}
}
