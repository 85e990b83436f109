// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// fixture is a server with a registry, that runs and is served by gRPC over a network in
// memory.
type fixture struct {
	*ads.Server
	t        testing.TB
	services *memory.Registry
	listener *memnet.Listener
	conn     *grpc.ClientConn // of shared
	proxy    *xdstest.Client  // of bareAndWatched
	stopNow  func()           // ends Run and the gRPC server, and waits for them
}

// serve starts a server of some services; it pushes at once.
func serve(tb testing.TB, options ads.Options, hosts ...string) *fixture {
	tb.Helper()
	return serveWith(tb, options, func(*ads.Server, grpc.ServiceRegistrar) {}, hosts...)
}

// serveWith is serve with what else is on the port.
func serveWith(tb testing.TB, options ads.Options, mount func(*ads.Server, grpc.ServiceRegistrar), hosts ...string) *fixture {
	tb.Helper()
	options.Debounce.After = -1
	registries := aggregate.NewController()
	f := &fixture{Server: ads.New(registries, options), t: tb, listener: memnet.Listen()}
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		f.services = memory.New(memory.Options{Updater: updater})
		return f.services
	})
	for _, host := range hosts {
		f.set(host, "10.0.0.1")
	}
	server := grpc.NewServer()
	f.Register(server)
	mount(f.Server, server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(f.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			tb.Errorf("Serve: %v", err)
		}
	})
	running.Go(func() { f.Run(stop) })
	f.stopNow = sync.OnceFunc(func() {
		close(stop)
		server.Stop()
		running.Wait()
	})
	tb.Cleanup(f.stopNow)
	return f
}

// set defines a service with endpoints at some addresses.
func (f *fixture) set(host string, addresses ...string) {
	f.t.Helper()
	service := &registry.Service{
		Hostname: registry.Hostname(host), Resolution: registry.ClientSideLB,
		Ports:        []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
		CreationTime: time.Unix(1000, 0),
		Attributes:   registry.ServiceAttributes{Name: host, Namespace: "shop"},
	}
	var endpoints []*registry.Endpoint
	for _, address := range addresses {
		endpoints = append(endpoints, &registry.Endpoint{
			Addresses: []string{address}, EndpointPort: 80, ServicePortName: "grpc", HealthStatus: registry.Healthy,
		})
	}
	if err := f.services.Set(service, endpoints); err != nil {
		f.t.Fatal(err)
	}
	f.ConfigUpdate(&xdsupdate.PushRequest{
		Full: true, Start: time.Now(), Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonService: 1},
		ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(service.Hostname, "shop")),
	})
}

// leads sets a cluster, and a route configuration that leads to it.
func (f *fixture) leads(name, to string) {
	f.t.Helper()
	f.UpdateResources(func(w ads.ResourceWriter) {
		for name, resource := range map[string]proto.Message{
			to: &cluster.Cluster{
				Name: to, ConnectTimeout: durationpb.New(time.Second), ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
				EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{EdsConfig: &core.ConfigSource{
					ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
				}},
			},
			name: &route.RouteConfiguration{Name: name, VirtualHosts: []*route.VirtualHost{{
				Name: "all", Domains: []string{"*"}, Routes: []*route.Route{{
					Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
					Action: &route.Route_Route{Route: &route.RouteAction{
						ClusterSpecifier: &route.RouteAction_Cluster{Cluster: to},
					}},
				}},
			}}},
		} {
			if err := w.SetResource(name, resource); err != nil {
				f.t.Error(err)
			}
		}
	})
}

func (f *fixture) flush() {
	f.t.Helper()
	if err := f.Flush(f.context()); err != nil {
		f.t.Fatal(err)
	}
}

// context returns a context for one test.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	f.t.Cleanup(cancel)
	return ctx
}

func (f *fixture) dial() *grpc.ClientConn {
	f.t.Helper()
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.listener.Dial(ctx) }))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client returns a connected client that is subscribed to all resources of a type.
func (f *fixture) client(options xdstest.ClientOptions, typeURL string) *xdstest.Client {
	f.t.Helper()
	c := xdstest.NewClient(f.dial(), options)
	f.t.Cleanup(c.Close)
	if err := c.Connect(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if err := c.Subscribe(typeURL); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// refused connects a client that is rejected, possibly before its first request.
func (f *fixture) refused(node *core.Node) {
	f.t.Helper()
	c := xdstest.NewClient(f.dial(), xdstest.ClientOptions{Node: node})
	f.t.Cleanup(c.Close)
	if err := c.Connect(f.context()); err != nil {
		f.t.Fatal(err)
	}
	_ = c.Subscribe(envoy.ClusterType)
	if r, err := c.Next(f.context()); err == nil {
		f.t.Errorf("a client that is not let in was sent %+v", r)
	}
}

func (f *fixture) next(c *xdstest.Client) xdstest.Response {
	f.t.Helper()
	r, err := c.Next(f.context())
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func node(name string) *core.Node {
	return &core.Node{Id: "sidecar~10.0.0.1~" + name + ".shop~shop.svc"}
}

// scrape returns what Prometheus gets: the value of each series by its name with labels.
func scrape(tb testing.TB, gatherer client.Gatherer) map[string]float64 {
	tb.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		tb.Fatalf("scrape: %d: %s", w.Code, w.Body)
	}
	out := make(map[string]float64)
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		end := strings.LastIndexByte(lines.Text(), ' ')
		value, err := strconv.ParseFloat(lines.Text()[end+1:], 64)
		if err != nil {
			tb.Fatalf("%q: %v", lines.Text(), err)
		}
		out[lines.Text()[:end]] = value
	}
	return out
}

// registered returns a registry with collectors.
func registered(tb testing.TB, collectors ...client.Collector) *client.Registry {
	tb.Helper()
	r := client.NewPedanticRegistry()
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

// series checks the values of some series.
func series(tb testing.TB, when string, got, want map[string]float64) {
	tb.Helper()
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			tb.Errorf("%s: %s: got %v (there: %v), want %v", when, name, v, ok, value)
		}
	}
}

// typed returns the name of a series of a type URL.
func typed(name, typeURL string) string { return labelled(name, "type_url", typeURL) }

func labelled(name, label, value string) string { return fmt.Sprintf("%s{%s=%q}", name, label, value) }

func check[T any](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
