// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// serveAlso serves the fixture's server with another gRPC server, too.
func (f *fixture) serveAlso(options ...grpc.ServerOption) net.Listener {
	f.t.Helper()
	return f.serveOn(listen(f.t), options...)
}

// serveOn is serveAlso with a listener.
func (f *fixture) serveOn(listener net.Listener, options ...grpc.ServerOption) net.Listener {
	f.t.Helper()
	server, done := grpc.NewServer(options...), make(chan struct{})
	f.Register(server)
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	f.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener
}

// TestCodec: with the codec clients are sent the same resources as without, compressed or not, and
// interceptors can change responses.
func TestCodec(t *testing.T) {
	var list []*registry.Service
	for i := range 400 {
		list = append(list, service(fmt.Sprintf("service-%05d.example.com", i), "shop"))
	}
	f := serve(t, ads.Options{}, list...)
	f.flush()
	signs := grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, signing{stream})
	})
	plain := f.serveAlso(signs)
	shared := f.serveAlso(signs, grpc.ForceServerCodecV2(ads.Codec()))
	for name, delta := range protocols() {
		for compression, options := range map[string][]grpc.CallOption{"plain": nil, "gzip": {grpc.UseCompressor(gzip.Name)}} {
			t.Run(name+"/"+compression, func(t *testing.T) {
				got, want := firstClusters(t, shared, delta, options), firstClusters(t, plain, delta, options)
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
					t.Errorf("with the codec (-without +with):\n%s", diff)
				}
				check(t, "bytes of a response are many", proto.Size(got) > 64<<10, true)
				check(t, "signed by", got.(interface{ GetControlPlane() *core.ControlPlane }).GetControlPlane().GetIdentifier(), "the host")
			})
		}
	}
}

// signing is a stream whose responses an interceptor changes.
type signing struct{ grpc.ServerStream }

func (s signing) SendMsg(m any) error {
	by := &core.ControlPlane{Identifier: "the host"}
	switch m := m.(type) {
	case *discovery.DiscoveryResponse:
		m.ControlPlane = by
	case *discovery.DeltaDiscoveryResponse:
		m.ControlPlane = by
	}
	return s.ServerStream.SendMsg(m)
}

// firstClusters returns the first response to a wildcard client.
func firstClusters(t *testing.T, server net.Listener, delta bool, options []grpc.CallOption) proto.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var response, request proto.Message = &discovery.DiscoveryResponse{}, &discovery.DiscoveryRequest{
		Node: node("a", "shop"), TypeUrl: envoy.ClusterType,
	}
	method := sotwMethod
	if delta {
		response, method = &discovery.DeltaDiscoveryResponse{}, deltaMethod
		request = &discovery.DeltaDiscoveryRequest{Node: node("a", "shop"), TypeUrl: envoy.ClusterType}
	}
	conn := dialTo(t, server)
	defer func() { _ = conn.Close() }()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, options...)
	if err == nil {
		err = stream.SendMsg(request)
	}
	if err == nil {
		err = stream.RecvMsg(response)
	}
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// TestCodecShares: a large response is not copied, a small one is one buffer.
func TestCodecShares(t *testing.T) {
	for _, size := range []int{1 << 10, 1 << 20} {
		resources := protowire.AppendTag(nil, 2, protowire.BytesType)
		resources = protowire.AppendString(resources, strings.Repeat("x", size))
		m := &discovery.DiscoveryResponse{VersionInfo: "1", Nonce: "2", TypeUrl: envoy.ClusterType}
		m.ProtoReflect().SetUnknown(resources)
		data, err := ads.Codec().Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "shared", &data[len(data)-1].ReadOnlyData()[0] == &resources[0], size > 64<<10)
		whole, err := proto.Marshal(m)
		check(t, "error", err, nil)
		check(t, "bytes", len(data.Materialize()), len(whole))
		check(t, "nonce of the message", m.GetNonce(), "2")
	}
	if _, err := ads.Codec().Marshal("no message"); err == nil {
		t.Error("a text was encoded")
	}
}
