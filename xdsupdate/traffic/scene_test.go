// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/xdscheck"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// scene is a control plane as a host wires it: a store, services of ServiceEntries and
// of Kubernetes, policies, and a server that clients talk to.
type scene struct {
	t          *testing.T
	store      *storememory.Controller
	kubernetes *registrymemory.Registry
	policies   *traffic.Policies // nil: none, what is sent is built in
	server     *ads.Server
	conn       *grpc.ClientConn
}

// newScene starts a control plane with policies.
func newScene(t *testing.T, options traffic.Options) *scene {
	t.Helper()
	store := storememory.NewController(storememory.Make(istio.Schemas()))
	policies := traffic.New(store, options)
	return startScene(t, &scene{t: t, store: store, policies: policies}, ads.Options{Provider: policies})
}

// newPlainScene starts a control plane without policies.
func newPlainScene(t *testing.T) *scene {
	t.Helper()
	return startScene(t, &scene{t: t, store: storememory.NewController(storememory.Make(istio.Schemas()))}, ads.Options{})
}

func startScene(t *testing.T, s *scene, options ads.Options) *scene {
	t.Helper()
	registries := aggregate.NewController()
	options.Pusher = xdsupdate.PusherOptions{DebounceAfter: -1}
	s.server = ads.New(registries, options)
	registries.Add(func(updater xdsupdate.XDSUpdater) registry.Instance {
		s.kubernetes = registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes})
		return s.kubernetes
	})
	registries.Add(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(s.store, updater) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	s.must(err)
	server := grpc.NewServer()
	s.server.Register(server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.server.Run(stop) })
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		close(stop)
		running.Wait()
	})
	s.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err)
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply stores the objects of YAML documents, whose namespace is "shop" unless they
// say another one, and waits until they were pushed.
func (s *scene) apply(yaml string) {
	s.t.Helper()
	s.must(manifest.Apply(s.store, []byte(yaml), manifest.Options{DefaultNamespace: "shop"}))
	s.flush()
}

func (s *scene) flush() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.store.Drain()
	s.kubernetes.Drain()
	s.must(s.server.Flush(ctx))
}

// service sets a service of Kubernetes in the namespace shop, with its endpoints.
func (s *scene) service(svc *registry.Service, endpoints ...*registry.Endpoint) {
	s.t.Helper()
	svc.Attributes.Namespace, svc.CreationTime = "shop", time.Unix(1, 0)
	if svc.DefaultAddress == "" {
		svc.DefaultAddress = registry.UnspecifiedAddress
	}
	s.must(s.kubernetes.SetService(svc))
	s.endpoints(svc.Hostname, endpoints...)
}

// endpoints replaces the endpoints of a service of the namespace shop.
func (s *scene) endpoints(host registry.Hostname, endpoints ...*registry.Endpoint) {
	s.t.Helper()
	s.must(s.kubernetes.SetEndpoints(host, "shop", endpoints))
	s.flush()
}

// endpoint returns an endpoint of a service port; mode is its TLS mode.
func endpoint(address string, number uint32, name, mode string) *registry.Endpoint {
	return &registry.Endpoint{
		Addresses: []string{address}, EndpointPort: number, ServicePortName: name, HealthStatus: registry.Healthy,
		Shared: &registry.EndpointAttributes{Namespace: "shop", TLSMode: mode},
	}
}

// node returns a client: "sidecar", "router", or "grpc" for a gRPC client of Istio's
// bootstrap. Metadata has pairs of keys and values, which are strings or maps.
func node(kind string, metadata ...any) *core.Node {
	fields := map[string]any{"LABELS": map[string]any{"app": "edge"}}
	for i := 0; i < len(metadata); i += 2 {
		fields[metadata[i].(string)] = metadata[i+1]
	}
	if kind == "grpc" {
		kind, fields["GENERATOR"] = "sidecar", "grpc"
	}
	made, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return &core.Node{Id: kind + "~10.9.9.1~client.shop~shop.svc.cluster.local", Metadata: made}
}

// connect returns a client that is subscribed to nothing; every resource that it is
// sent has to be valid.
func (s *scene) connect(n *core.Node) *xdstest.Client {
	s.t.Helper()
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: n, Delta: true, Answer: func(r xdstest.Response) error {
		for _, resource := range r.Resources {
			m, err := resource.Message()
			if err == nil {
				err = xdscheck.Envoy(m)
			}
			if err != nil {
				s.t.Errorf("%s: %v", resource.Name, err)
			}
		}
		return nil
	}})
	s.must(c.Connect(s.t.Context()))
	s.t.Cleanup(c.Close)
	return c
}

// await waits until what a client has accepted is as wanted.
func (s *scene) await(c *xdstest.Client, wanted func(xdstest.State) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.must(c.Await(ctx, wanted))
}

// send returns what a new client is sent of a type by name; nil: nothing.
func (s *scene) send(n *core.Node, typeURL, name string) proto.Message {
	s.t.Helper()
	c := s.connect(n)
	defer c.Close()
	s.must(c.Subscribe(typeURL, name))
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	for {
		response, err := c.Next(ctx)
		s.must(err)
		for _, r := range response.Resources {
			if r.Name == name {
				m, err := r.Message()
				s.must(err)
				return m
			}
		}
		if slices.Contains(response.Removed, name) {
			return nil
		}
	}
}

func (s *scene) cluster(n *core.Node, name string) *clusterv3.Cluster {
	s.t.Helper()
	m, _ := s.send(n, envoy.ClusterType, name).(*clusterv3.Cluster)
	return m
}

func (s *scene) listener(n *core.Node, name string) *listenerv3.Listener {
	s.t.Helper()
	m, _ := s.send(n, envoy.ListenerType, name).(*listenerv3.Listener)
	return m
}

func (s *scene) routes(n *core.Node, name string) *routev3.RouteConfiguration {
	s.t.Helper()
	m, _ := s.send(n, envoy.RouteType, name).(*routev3.RouteConfiguration)
	return m
}

// connectionManager returns that of the first filter chain of a listener.
func (s *scene) connectionManager(l *listenerv3.Listener) *hcm.HttpConnectionManager {
	s.t.Helper()
	var m hcm.HttpConnectionManager
	for _, f := range l.GetFilterChains()[0].GetFilters() {
		if f.GetTypedConfig().MessageIs(&m) {
			s.must(f.GetTypedConfig().UnmarshalTo(&m))
			return &m
		}
	}
	s.t.Fatalf("no connection manager in %v", l)
	return nil
}

// hostOf returns the virtual host that Envoy chooses for the host of a request: exact
// domains first, then the longest that begins with "*", then "*". Nil: none.
func hostOf(rc *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	var found *routev3.VirtualHost
	length := -1
	for _, vh := range rc.GetVirtualHosts() {
		for _, d := range vh.GetDomains() {
			if d == host {
				return vh
			}
			if rest, ok := cutWildcard(d); ok && len(host) > len(rest) && host[len(host)-len(rest):] == rest && len(rest) > length {
				found, length = vh, len(rest)
			}
		}
	}
	return found
}

func cutWildcard(domain string) (string, bool) {
	if domain == "" || domain[0] != '*' {
		return "", false
	}
	return domain[1:], true
}

// clusterOf returns where the first route for the host of a request leads to; "" for
// no cluster.
func clusterOf(rc *routev3.RouteConfiguration, host string) string {
	routes := hostOf(rc, host).GetRoutes()
	if len(routes) == 0 {
		return ""
	}
	return routes[0].GetRoute().GetCluster()
}
