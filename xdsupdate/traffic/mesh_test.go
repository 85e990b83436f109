// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// testTimeout bounds a test: what a test waits for takes a part of a second, unless
// the machine is busy.
const testTimeout = 3 * time.Minute

// benchTimeout bounds a benchmark with all its rounds.
const benchTimeout = 10 * time.Minute

// host is the service that all tests call.
const host = "quotes.example.com"

// mesh is a running server with policies and a registry, without clients.
type mesh struct {
	t        testing.TB
	ctx      context.Context //nolint:containedctx // it bounds the test, like t
	store    *storememory.Controller
	registry *registrymemory.Registry
	server   *ads.Server
	address  string
}

func startMesh(tb testing.TB, options traffic.Options) *mesh {
	tb.Helper()
	timeout := testTimeout
	if _, ok := tb.(*testing.B); ok {
		timeout = benchTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	tb.Cleanup(cancel)
	m := &mesh{t: tb, ctx: ctx, store: storememory.NewController(storememory.Make(istio.Schemas()))}
	registries := aggregate.NewController()
	m.server = ads.New(registries, ads.Options{
		Providers: []ads.Provider{traffic.New(m.store, options)}, Debounce: xdsupdate.Debounce{After: -1},
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		m.registry = registrymemory.New(registrymemory.Options{Updater: updater})
		return m.registry
	})
	m.address = m.serve(m.server.Register)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { m.server.Run(stop) })
	tb.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	m.must(m.registry.SetService(&registry.Service{
		Hostname: host, DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(1, 0),
		Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
		Attributes: registry.ServiceAttributes{Name: host, Namespace: "shop"},
	}))
	return m
}

// serve runs a gRPC server until the end of the test and returns its address.
func (m *mesh) serve(register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) string {
	m.t.Helper()
	listener := testserver.Listen(m.t, "127.0.0.1:0")
	server := grpc.NewServer(options...)
	register(server)
	testserver.Serve(m.t, listener, server)
	return listener.Addr().String()
}

func (m *mesh) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// apply sets an object of the namespace shop, whose spec is JSON, and waits until
// clients have what it leads to.
func (m *mesh) apply(kind configstore.GroupVersionKind, name, spec string) {
	m.t.Helper()
	var message proto.Message = &networking.DestinationRule{}
	if kind == istio.VirtualService {
		message = &networking.VirtualService{}
	}
	m.must(protojson.Unmarshal([]byte(spec), message))
	_, err := configstore.Upsert(m.store, configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "shop", Name: name}, Spec: message})
	m.must(err)
	m.store.Drain()
	m.applied()
}

// applied returns when all clients have accepted what there is.
func (m *mesh) applied() {
	m.t.Helper()
	m.must(m.server.WaitApplied(m.ctx, nil))
}

// backend is a health service that names itself in a header.
type backend struct {
	healthpb.UnimplementedHealthServer
	name    string
	failing atomic.Bool
	// hold, if it is set, is received from before an answer.
	hold   chan struct{}
	held   chan struct{}
	server *grpc.Server
	stop   func()
	// endpoint is what the registry knows of it.
	endpoint *registry.Endpoint
}

// Check implements healthpb.HealthServer.
func (b *backend) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if b.failing.Load() {
		return nil, status.Error(codes.Internal, "failing")
	}
	if b.hold != nil && r.GetService() == "hold" {
		b.held <- struct{}{}
		<-b.hold
	}
	if err := grpc.SetHeader(ctx, metadata.Pairs("backend", b.name)); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// start starts a backend; attributes are "key=value" labels and "locality=a/b".
func (m *mesh) start(name string, attributes ...string) *backend {
	m.t.Helper()
	b := &backend{name: name, hold: make(chan struct{}), held: make(chan struct{}, 1)}
	b.endpoint = newEndpoint(attributes)
	b.listen(m, "")
	return b
}

func newEndpoint(attributes []string) *registry.Endpoint {
	shared := &registry.EndpointAttributes{Labels: registry.Labels{}, Namespace: "shop"}
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		if key == "locality" {
			shared.Locality = value
		} else {
			shared.Labels[key] = value
		}
	}
	return &registry.Endpoint{ServicePortName: "grpc", Shared: shared, HealthStatus: registry.Healthy}
}

// listen serves the backend at an address, "" for any, until it is stopped.
func (b *backend) listen(m *mesh, address string) {
	m.t.Helper()
	listener := testserver.Listen(m.t, address)
	b.server = grpc.NewServer()
	healthpb.RegisterHealthServer(b.server, b)
	b.stop = testserver.Serve(m.t, listener, b.server)
	b.endpoint.Addresses, b.endpoint.EndpointPort = splitAddress(m.t, listener.Addr().String())
}

func splitAddress(tb testing.TB, address string) ([]string, uint32) {
	tb.Helper()
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		tb.Fatal(err)
	}
	return []string{ip}, uint32(number)
}

// place puts backends behind the service, and no others.
func (m *mesh) place(backends ...*backend) {
	m.t.Helper()
	var list []*registry.Endpoint
	for _, b := range backends {
		e := *b.endpoint
		list = append(list, &e)
	}
	slices.SortFunc(list, registry.CompareEndpoints)
	m.must(m.registry.SetEndpoints(host, "shop", list))
	m.applied()
}

// client returns grpc-go's own xDS client; locality is "region/zone".
func (m *mesh) client(locality string, options ...grpc.DialOption) healthpb.HealthClient {
	m.t.Helper()
	region, zone, _ := strings.Cut(locality, "/")
	builder, err := xds.NewXDSResolverWithConfigForTesting(m.bootstrap("client", fmt.Sprintf(`{"region":%q,"zone":%q}`, region, zone), ""))
	m.must(err)
	options = append([]grpc.DialOption{grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	conn, err := grpc.NewClient("xds:///"+host+":80", options...)
	m.must(err)
	m.t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// bootstrap returns the bootstrap of a client or server; more is added to it.
func (m *mesh) bootstrap(name, locality, more string) []byte {
	return fmt.Appendf(nil, `{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "sidecar~10.0.0.1~%s.shop~shop.svc.cluster.local", "metadata": {"GENERATOR": "grpc"}, "locality": %s}%s
	}`, m.address, name, locality, more)
}

// call makes a call, with the header "x" if it is not empty, and returns which
// backend answered.
func (m *mesh) call(client healthpb.HealthClient, x string, options ...grpc.CallOption) (string, error) {
	ctx := m.ctx
	if x != "" {
		ctx = withHeader(ctx, x)
	}
	var header metadata.MD
	_, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, append(options, grpc.Header(&header), grpc.WaitForReady(true))...)
	if err != nil {
		return "", err
	}
	return header.Get("backend")[0], nil
}

// calls makes calls, none of which may fail, and counts who answered.
func (m *mesh) calls(client healthpb.HealthClient, n int, x func(i int) string) map[string]int {
	m.t.Helper()
	out := make(map[string]int)
	for i := range n {
		name, err := m.call(client, x(i))
		if err != nil {
			m.t.Fatalf("call %d: %v", i, err)
		}
		out[name]++
	}
	return out
}

func withHeader(ctx context.Context, x string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x", x)
}

func noHeader(int) string { return "" }

// until waits until a condition holds; it is asked again and again.
func (m *mesh) until(what string, condition func() bool) {
	m.t.Helper()
	for !condition() {
		if m.ctx.Err() != nil {
			m.t.Fatalf("waited for %s", what)
		}
	}
}

// refused fails the test if a client has refused a resource.
func (m *mesh) refused() {
	m.t.Helper()
	faults, _ := m.server.Faults()
	for _, f := range faults {
		if errors.Is(&f, ads.ErrRejected) {
			m.t.Error(&f)
		}
	}
}
