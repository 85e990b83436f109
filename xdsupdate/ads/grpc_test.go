// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/xds"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// backend is a health service that names itself in a header.
type backend struct {
	healthpb.UnimplementedHealthServer
	name string
}

func (b backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("backend", b.name)); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// startBackend returns the endpoint of a new backend.
func startBackend(tb testing.TB, name string) *registry.Endpoint {
	tb.Helper()
	listener := listen(tb)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, backend{name: name})
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(listener); err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	tb.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		tb.Fatal(err)
	}
	return endpoint(host, uint32(number))
}

// xdsClient is grpc-go's own xDS client.
func (f *fixture) xdsClient(target, nodeID string) healthpb.HealthClient {
	f.t.Helper()
	bootstrap := fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": %q, "locality": {}}
	}`, f.address(), nodeID)
	builder, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		f.t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// call returns which backend answered.
func call(ctx context.Context, tb testing.TB, client healthpb.HealthClient) string {
	tb.Helper()
	var header metadata.MD
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.WaitForReady(true)); err != nil {
		tb.Fatal(err)
	}
	return header.Get("backend")[0]
}

// callUntil calls until a backend answers, and fails on any failed call.
func callUntil(ctx context.Context, tb testing.TB, client healthpb.HealthClient, want string) {
	tb.Helper()
	for call(ctx, tb, client) != want {
		if ctx.Err() != nil {
			tb.Fatalf("no answer from %s: %v", want, ctx.Err())
		}
	}
}

func TestGRPCClientFollowsEndpoints(t *testing.T) {
	for _, target := range []string{"xds:///api.example.com:80", "xds:///api.example.com"} {
		t.Run(target, func(t *testing.T) {
			one, two := startBackend(t, "one"), startBackend(t, "two")
			f := serve(t, ads.Options{}, service("api.example.com", "shop"))
			ctx := f.context()
			f.eds("api.example.com", "shop", one)
			client := f.xdsClient(target, "sidecar~10.0.0.1~client.shop~shop.svc")
			if got := call(ctx, t, client); got != "one" {
				t.Fatalf("backend = %q, want one", got)
			}
			f.eds("api.example.com", "shop", one, two)
			callUntil(ctx, t, client, "two")
			f.eds("api.example.com", "shop", two)
			if err := f.WaitApplied(ctx, nil); err != nil {
				t.Fatal(err)
			}
			callUntil(ctx, t, client, "two")
			for _, p := range f.Proxies() {
				for typeURL, s := range p.Types {
					if s.Acked == "" || s.Acked != s.Sent || s.Rejections > 0 {
						t.Errorf("%s: %+v", typeURL, s)
					}
				}
			}
		})
	}
}

// TestGRPCClientResolvesNames: gRPC clients reject STRICT_DNS, which Envoys get.
func TestGRPCClientResolvesNames(t *testing.T) {
	e := startBackend(t, "one")
	e.Addresses = []string{"localhost"}
	other := *e
	other.Addresses = []string{"unused.invalid"}
	f := serve(t, ads.Options{}, service("api.example.com", "shop", func(s *registry.Service) { s.Resolution = registry.DNSLB }))
	f.eds("api.example.com", "shop", e, &other)
	client := f.xdsClient("xds:///api.example.com:80", "n1")
	if got := call(f.context(), t, client); got != "one" {
		t.Fatalf("backend = %q, want one", got)
	}
	if faults, _ := f.Faults(); faults != nil {
		t.Errorf("faults: %+v", faults)
	}
}

// TestGRPCClientKeepsCallingThroughRedefinition: a service goes from STATIC to DNS
// and back, by the calls that registries make, and no call fails.
func TestGRPCClientKeepsCallingThroughRedefinition(t *testing.T) {
	const host = "api.example.com"
	static, byName := startBackend(t, "static"), startBackend(t, "dns")
	byName.Addresses = []string{"localhost"}
	f := serve(t, ads.Options{}, service(host, "shop"))
	f.eds(host, "shop", static)
	client := f.xdsClient("xds:///"+host+":80", "n1")
	callUntil(f.context(), t, client, "static")
	for range 3 {
		for _, as := range []struct {
			resolution registry.Resolution
			endpoint   *registry.Endpoint
			backend    string
		}{{registry.DNSLB, byName, "dns"}, {registry.ClientSideLB, static, "static"}} {
			f.services.set(service(host, "shop", func(s *registry.Service) { s.Resolution = as.resolution }))
			f.SvcUpdate(shard, host, "shop", registry.EventUpdate)
			f.eds(host, "shop", as.endpoint)
			if err := f.WaitApplied(f.context(), nil); err != nil {
				t.Fatal(err)
			}
			callWithoutWaiting(f.context(), t, client, as.backend)
			f.push(host, "shop")
			f.flush() // the next definition must not come into the middle of this push
		}
	}
}

// push asks for a full push of a service.
func (f *fixture) push(host, namespace string) {
	f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(registry.Hostname(host), namespace))})
}

// callWithoutWaiting is callUntil with calls that fail as soon as there is no
// endpoint.
func callWithoutWaiting(ctx context.Context, tb testing.TB, client healthpb.HealthClient, want string) {
	tb.Helper()
	for {
		var header metadata.MD
		if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
			tb.Fatal(err)
		}
		if header.Get("backend")[0] == want {
			return
		}
	}
}
