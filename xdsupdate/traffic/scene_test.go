// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/testserver"
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

// scene is a control plane as a program wires it: a store, services of ServiceEntries and
// of Kubernetes, policies, and a server that clients talk to.
type scene struct {
	t          testing.TB
	store      *storememory.Controller
	services   registry.ServiceDiscovery
	kubernetes *registrymemory.Registry
	policies   *traffic.Policies // nil: none, what is sent is built in
	provided   *recorder         // nil: nothing is recorded
	server     *ads.Server
	conn       *grpc.ClientConn
	clusterID  registry.ClusterID
	clients    int // that were numbered
	close      func()
}

// newScene starts a control plane with policies.
func newScene(tb testing.TB, options traffic.Options) *scene {
	tb.Helper()
	return given(tb, options, istio.Schemas(), nil, nil)
}

// newPlainScene starts a control plane without policies.
func newPlainScene(tb testing.TB) *scene {
	tb.Helper()
	s := &scene{t: tb, store: storememory.NewController(storememory.Make(istio.Schemas()))}
	s.wire(ads.Options{})
	s.serve()
	return s
}

// stage starts a control plane that has objects, services and endpoints before its first
// client comes. Its store validates nothing: what is left out or made harmless is so
// because of what the objects say.
func stage(tb testing.TB, options traffic.Options, objects configList, services *population) *scene {
	tb.Helper()
	return given(tb, options, lenientSchemas(), objects, services)
}

// lenientSchemas are those of Istio's kinds without validation.
var lenientSchemas = sync.OnceValue(func() configstore.Schemas {
	schemas := configstore.NewSchemasBuilder()
	for _, s := range istio.Schemas().All() {
		s.Validate, s.Text = nil, nil
		schemas.MustAdd(s)
	}
	return schemas.Build()
})

func given(tb testing.TB, options traffic.Options, schemas configstore.Schemas, objects configList, services *population) *scene {
	tb.Helper()
	s := &scene{t: tb, store: storememory.NewController(storememory.Make(schemas))}
	s.policies = traffic.New(s.store, options)
	s.provided = &recorder{Policies: s.policies}
	s.wire(ads.Options{Providers: []ads.Provider{s.provided}})
	s.create(objects)
	if services != nil {
		for _, svc := range services.services {
			s.must(s.kubernetes.SetService(svc))
			if list := services.endpoints[svc]; list != nil {
				s.must(s.kubernetes.SetEndpoints(svc.Hostname, svc.Attributes.Namespace, list))
			}
		}
	}
	s.store.Drain() // the first push has everything
	s.serve()
	s.applied()
	return s
}

// applyAll stores objects in one batch.
func (s *scene) applyAll(objects configList) {
	s.t.Helper()
	var batch []configstore.Mutation
	for _, c := range objects {
		batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: *c})
	}
	_, err := s.store.Apply(batch...)
	s.must(err)
}

// create stores objects that are not there yet.
func (s *scene) create(objects configList) {
	s.t.Helper()
	for _, c := range objects {
		_, err := s.store.Create(*c)
		s.must(err)
	}
}

// wire makes the server and its registries.
func (s *scene) wire(options ads.Options) {
	registries := aggregate.NewController()
	options.Pusher = xdsupdate.PusherOptions{DebounceAfter: -1}
	s.services, s.server = registries, ads.New(registries, options)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		s.kubernetes = registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes})
		return s.kubernetes
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(s.store, updater, serviceentry.Options{ClusterID: s.clusterID})
	})
}

// serve runs the server until the end of the test.
func (s *scene) serve() {
	s.t.Helper()
	server := grpc.NewServer(ads.ServerOptions()...)
	s.server.Register(server)
	s.conn, s.close = testserver.ServeMemory(s.t, server, s.server.Run)
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

// change stores objects, of which those that are there stay as old as they are, and waits
// until all clients have what follows.
func (s *scene) change(objects configList) {
	s.t.Helper()
	for _, o := range objects {
		c := *o
		if before := s.store.Get(c.GroupVersionKind, c.Name, c.Namespace); before != nil {
			c.CreationTimestamp = before.CreationTimestamp
		}
		_, err := configstore.Upsert(s.store, c)
		s.must(err)
	}
	s.applied()
}

func (s *scene) flush() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.store.Drain()
	s.kubernetes.Drain()
	s.must(s.server.Flush(ctx))
}

// applied waits until every client has all that there is for it. That some resource
// cannot be made is what a test may be about.
func (s *scene) applied() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.store.Drain()
	s.kubernetes.Drain()
	if err := s.server.WaitApplied(ctx, nil); !errors.Is(err, ads.ErrNotUpdated) {
		s.must(err)
	}
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

// in returns a client of a kind, as node does, of a namespace, with labels "key=value".
func in(kind, namespace string, labels ...string) *core.Node {
	all := make(map[string]any)
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		all[key] = value
	}
	return node(kind, "NAMESPACE", namespace, "LABELS", all)
}

// edge is the router that the Gateways of tests are for.
func edge() *core.Node { return in("router", "ingress", "app=edge") }

// at returns a client with another address.
func at(n *core.Node, address string) *core.Node {
	out := proto.CloneOf(n)
	out.Metadata.Fields["INSTANCE_IPS"] = structpb.NewStringValue(address)
	return out
}

// isGRPC reports whether a client is a gRPC client.
func isGRPC(n *core.Node) bool { return n.GetMetadata().GetFields()["GENERATOR"] != nil }

// accepted returns why a client would refuse a resource.
func accepted(n *core.Node, m proto.Message) error {
	if isGRPC(n) {
		return xdscheck.GRPC(m)
	}
	return xdscheck.Envoy(m)
}

// connect returns a client that is subscribed to nothing; every resource that it is
// sent has to be valid.
func (s *scene) connect(n *core.Node) *xdstest.Client {
	s.t.Helper()
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: n, Delta: true, Answer: func(r xdstest.Response) error {
		for _, resource := range r.Resources {
			m, err := resource.Message()
			if err == nil {
				err = accepted(n, m)
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

// answer is what a client is sent of one type.
type answer struct {
	names     []string // those that it is sent, sorted
	resources map[string]proto.Message
	// failed is what is left out, or why nothing can be made, by name.
	failed map[string]string
}

// ask returns what a new client is sent of a type by names, or, without names, of all.
func (s *scene) ask(n *core.Node, typeURL string, names ...string) answer {
	s.t.Helper()
	out := answer{resources: make(map[string]proto.Message), failed: make(map[string]string)}
	n = s.numbered(n)
	c := s.connect(n)
	defer c.Close()
	s.must(c.Subscribe(typeURL, orAll(names)...))
	s.answered(c)
	for name, r := range c.State().Resources(typeURL) {
		m, err := r.Message()
		s.must(err)
		out.resources[name] = m
	}
	out.names = slices.Sorted(maps.Keys(out.resources))
	for _, f := range s.status(n).Types[typeURL].Failed {
		out.failed[f.Name] = reasons(f.Error)
	}
	return out
}

// reasons returns what the policies say of a failure, a line each.
func reasons(failure string) string {
	var out []string
	for line := range strings.Lines(failure) {
		out = append(out, strings.TrimPrefix(line[max(0, strings.Index(line, "traffic: ")):], "traffic: "))
	}
	return strings.Join(out, "")
}

// orAll returns names, or if there are none that of a wildcard subscription.
func orAll(names []string) []string {
	if len(names) == 0 {
		return []string{"*"}
	}
	return names
}

// answered waits until a client that has subscribed has all that there is for it.
func (s *scene) answered(c *xdstest.Client) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	_, err := c.Next(ctx) // then the server knows of the subscription
	s.must(err)
	s.applied()
}

// numbered returns a client with an ID of its own: a stream that has ended may still be
// known to the server.
func (s *scene) numbered(n *core.Node) *core.Node {
	s.clients++
	out := proto.CloneOf(n)
	out.Id = strings.Replace(n.GetId(), "~client", fmt.Sprintf("~client-%d", s.clients), 1)
	return out
}

// status returns what the server knows of a connected client.
func (s *scene) status(n *core.Node) ads.ProxyStatus {
	s.t.Helper()
	for _, p := range s.server.Proxies() {
		if p.ID == n.GetId() {
			return p
		}
	}
	s.t.Fatalf("%s is not connected", n.GetId())
	return ads.ProxyStatus{}
}

// send returns what a new client is sent of a type by name; nil: nothing.
func (s *scene) send(n *core.Node, typeURL, name string) proto.Message {
	s.t.Helper()
	return s.ask(n, typeURL, name).resources[name]
}

// ineffective returns what of the objects has no effect, as text.
func (s *scene) ineffective() []string {
	var out []string
	for _, e := range s.policies.Ineffective() {
		out = append(out, e.String())
	}
	return out
}

// explain returns what becomes of a call of a client.
func (s *scene) explain(n *core.Node, call traffic.Call) traffic.Explanation {
	s.t.Helper()
	return s.policies.Explain(s.view(n), call)
}

// reason returns why a field of an object has no effect; "": it has.
func (s *scene) reason(name, field string) string {
	for _, e := range s.policies.Ineffective() {
		if e.Name == name && e.Field == field {
			return e.Reason
		}
	}
	return ""
}

// routeConfigs returns route configurations by name.
func (s *scene) routeConfigs(n *core.Node, names ...string) map[string]*routev3.RouteConfiguration {
	s.t.Helper()
	out := make(map[string]*routev3.RouteConfiguration)
	for name, m := range s.ask(n, envoy.RouteType, names...).resources {
		out[name] = m.(*routev3.RouteConfiguration)
	}
	return out
}

func (s *scene) cluster(n *core.Node, name string) *clusterv3.Cluster {
	s.t.Helper()
	m, _ := s.send(n, envoy.ClusterType, name).(*clusterv3.Cluster)
	return m
}

func (s *scene) assignment(n *core.Node, name string) *endpointv3.ClusterLoadAssignment {
	s.t.Helper()
	m, _ := s.send(n, envoy.LoadAssignmentType, name).(*endpointv3.ClusterLoadAssignment)
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
