// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const (
	database        = "db.shop.svc.cluster.local"
	databaseCluster = "outbound|80||" + database
)

// headless is a service of a StatefulSet.
func headless(protocol registry.Protocol) *registry.Service {
	return &registry.Service{
		Hostname: database, Resolution: registry.Passthrough,
		Ports: []*registry.Port{{Name: "p", Number: 80, Protocol: protocol}},
	}
}

// TestPodsOfHeadlessServices: the pods of a headless service are called by names below
// its own, in all forms that the resolver of the client completes.
func TestPodsOfHeadlessServices(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(headless(registry.ProtocolHTTP), endpoint("10.1.0.1", 80, "p", ""))
	s.service(&registry.Service{
		Hostname: "cart.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "p", Number: 80, Protocol: registry.ProtocolHTTP}},
	})
	s.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: none}
spec: {hosts: [none.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE}
`)
	rc := s.routes(node("sidecar"), "80")
	for host, want := range map[string]string{
		database:                               databaseCluster,
		"db-0." + database:                     databaseCluster,
		"db-0." + database + ".":               databaseCluster,
		"db-0.db":                              databaseCluster,
		"db-0.db.shop":                         databaseCluster,
		"db-0.db.shop.svc":                     databaseCluster,
		"x.cart.shop.svc.cluster.local":        "PassthroughCluster",
		"x.none.example.com":                   "PassthroughCluster",
		"db-0.db.billing.svc.cluster.local":    "PassthroughCluster",
		"none.example.com":                     "outbound|80||none.example.com",
		"cart.shop.svc.cluster.local":          "outbound|80||cart.shop.svc.cluster.local",
		"x-" + database:                        "PassthroughCluster",
		"elsewhere.shop.svc.cluster.local.com": "PassthroughCluster",
	} {
		if got := clusterOf(rc, host); got != want {
			t.Errorf("%s leads to %q, want %q", host, got, want)
		}
	}
	grpc := hostOf(s.routes(node("grpc"), databaseCluster), database)
	for _, want := range []string{"*." + database, "*." + database + ":80"} {
		if !slices.Contains(grpc.GetDomains(), want) {
			t.Errorf("gRPC clients have no domain %s: %q", want, grpc.GetDomains())
		}
	}
}

// TestPodsOfHeadlessServicesFollowPolicies: what a VirtualService says of the service
// is for its pods, but for those that a VirtualService of their own is for.
func TestPodsOfHeadlessServicesFollowPolicies(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(headless(registry.ProtocolHTTP))
	s.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db}
spec:
  hosts: [db]
  http: [{name: all, timeout: 7s, route: [{destination: {host: db}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: first}
spec:
  hosts: [db-0.` + database + `]
  http: [{name: first, route: [{destination: {host: db}}]}]
`)
	rc := s.routes(node("sidecar"), "80")
	for host, want := range map[string]string{database: "all", "db-1." + database: "all", "db-1.db": "all", "db-0." + database: "first"} {
		if got := hostOf(rc, host).GetRoutes()[0].GetName(); got != want {
			t.Errorf("%s has route %q, want %q", host, got, want)
		}
	}
}

// TestHeadlessServiceWithoutProtocol: the pods of such a service have listeners of
// their own, which ask for the route configuration of the service.
func TestHeadlessServiceWithoutProtocol(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(headless(registry.ProtocolUnsupported))
	s.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: none}
spec: {hosts: [none.example.com], ports: [{number: 80, name: any}], resolution: NONE}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db}
spec:
  hosts: [db]
  http: [{name: all, route: [{destination: {host: db}}]}]
`)
	rc := s.routes(node("sidecar"), database+":80")
	if rc == nil {
		t.Fatal("the route configuration of the service is not answered")
	}
	if got := hostOf(rc, "10.1.0.1").GetRoutes()[0].GetName(); got != "all" {
		t.Errorf("a request to the address of a pod has route %q", got)
	}
	if rc := s.routes(node("sidecar"), "none.example.com:80"); len(rc.GetVirtualHosts()) > 0 {
		t.Errorf("a service without pods and address has %v", rc)
	}
	c := s.connect(node("sidecar"))
	s.must(c.Subscribe(envoy.RouteType))
	s.await(c, func(st xdstest.State) bool { return st.Has(envoy.RouteType, "80", database+":80") })
	if got, want := c.State().Names(envoy.RouteType), []string{"80", database + ":80"}; !slices.Equal(got, want) {
		t.Errorf("all route configurations are %q, want %q", got, want)
	}
}

// socketsOf says what TLS a cluster has: "mutual", "plain", or "by endpoint".
func socketsOf(t *testing.T, c *clusterv3.Cluster) string {
	t.Helper()
	var config tls.UpstreamTlsContext
	switch {
	case len(c.GetTransportSocketMatches()) > 0:
		return "by endpoint"
	case c.GetTransportSocket() == nil:
		return "plain"
	}
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(&config); err != nil {
		t.Fatal(err)
	}
	if config.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs()[0].GetName() != envoy.WorkloadCertificate {
		t.Fatalf("TLS is not that of the mesh: %v", &config)
	}
	return "mutual"
}

// TestMutualTLSWithoutEndpoints: Envoy chooses a transport socket by the metadata of the
// endpoint. Where connections go where clients wanted to, there is none: they are mutual
// TLS if all endpoints of the port take it, as they are at the moment.
func TestMutualTLSWithoutEndpoints(t *testing.T) {
	s := newScene(t, traffic.Options{})
	ready, plain := endpoint("10.1.0.1", 80, "p", "istio"), endpoint("10.1.0.2", 80, "p", "")
	s.service(headless(registry.ProtocolHTTP), ready)
	check := func(name, host, want string) {
		t.Helper()
		if got := socketsOf(t, s.cluster(node("sidecar"), "outbound|80||"+host)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	check("all endpoints take mutual TLS", database, "mutual")
	s.endpoints(database, ready, plain)
	check("one of them does not", database, "plain")
	s.endpoints(database, ready, endpoint("10.1.0.3", 81, "other", ""))
	check("one of another port does not", database, "mutual")
	s.endpoints(database)
	check("no endpoint", database, "plain")
	s.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: none}
spec: {hosts: ["*.example.com"], ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE, location: MESH_INTERNAL}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: dynamic}
spec: {hosts: ["*.example.org"], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DYNAMIC_DNS, location: MESH_INTERNAL}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: static}
spec:
  hosts: [static.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  endpoints: [{address: 10.2.0.1}, {address: 10.2.0.2, labels: {security.istio.io/tlsMode: istio}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: legacy}
spec:
  hosts: [legacy.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  endpoints: [{address: 10.2.0.3}]
`)
	check("a wildcard without endpoints", "*.example.com", "plain")
	check("a wildcard that is looked up", "*.example.org", "plain")
	check("endpoints that are sent", "static.example.com", "by endpoint")
	check("endpoints that are sent, none takes it", "legacy.example.com", "plain")
}

// TestMutualTLSFollowsEndpoints: a client that is there learns that all endpoints take
// mutual TLS, or one does not, also where a DestinationRule passes connections through.
func TestMutualTLSFollowsEndpoints(t *testing.T) {
	for i, svc := range []*registry.Service{headless(registry.ProtocolHTTP), {
		Hostname: database, Ports: []*registry.Port{{Name: "p", Number: 80, Protocol: registry.ProtocolHTTP}}, DefaultAddress: "10.0.0.1",
	}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newScene(t, traffic.Options{})
			s.apply(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: db}
spec:
  host: db
  trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: PASSTHROUGH}}]}
`)
			s.service(svc, endpoint("10.1.0.1", 80, "p", "istio"))
			c := s.connect(node("sidecar"))
			s.must(c.Subscribe(envoy.ClusterType))
			for _, want := range []string{"mutual", "plain", "mutual"} {
				mode := ""
				if want == "mutual" {
					mode = "istio"
				}
				s.endpoints(database, endpoint("10.1.0.1", 80, "p", "istio"), endpoint("10.1.0.2", 80, "p", mode))
				s.await(c, func(st xdstest.State) bool {
					r, ok := st.Resources(envoy.ClusterType)[databaseCluster]
					return ok && socketsOf(t, clusterIn(t, r.Any)) == want
				})
			}
		})
	}
}

// TestMeshSecretsAreNamedWhereUsed: a cluster names the secrets of the mesh from the push
// in which the first endpoint comes that takes mutual TLS, and from then on: it is not
// replaced each time that such an endpoint comes or goes.
func TestMeshSecretsAreNamedWhereUsed(t *testing.T) {
	s := newScene(t, traffic.Options{})
	plain, mutual := endpoint("10.1.0.1", 80, "p", ""), endpoint("10.1.0.2", 80, "p", "istio")
	s.service(&registry.Service{
		Hostname: database, Ports: []*registry.Port{{Name: "p", Number: 80, Protocol: registry.ProtocolHTTP}}, DefaultAddress: "10.0.0.1",
	}, plain)
	c := s.connect(node("sidecar"))
	s.must(c.Subscribe(envoy.ClusterType))
	s.must(c.Subscribe(envoy.LoadAssignmentType, databaseCluster))
	cluster := func(st xdstest.State) xdstest.Resource { return st.Resources(envoy.ClusterType)[databaseCluster] }
	awaitEndpoints := func(n int) xdstest.State {
		t.Helper()
		s.await(c, func(st xdstest.State) bool {
			r, ok := st.Resources(envoy.LoadAssignmentType)[databaseCluster]
			return ok && endpointsIn(t, r.Any) == n && cluster(st).Any != nil
		})
		return c.State()
	}
	if got := socketsOf(t, clusterIn(t, cluster(awaitEndpoints(1)).Any)); got != "plain" {
		t.Errorf("without an endpoint that takes mutual TLS: %s", got)
	}
	s.endpoints(database, plain, mutual)
	// The load assignment comes after the cluster.
	first := cluster(awaitEndpoints(2))
	if got := socketsOf(t, clusterIn(t, first.Any)); got != "by endpoint" {
		t.Errorf("with an endpoint that takes mutual TLS: %s", got)
	}
	for n, list := range [][]*registry.Endpoint{{}, {plain}, {plain, mutual}} {
		s.endpoints(database, list...)
		if now := cluster(awaitEndpoints(n)); !proto.Equal(now.Any, first.Any) {
			t.Errorf("with %d endpoints the cluster is another one: %v", n, now.Any)
		}
	}
}

// endpointsIn counts the endpoints of a load assignment.
func endpointsIn(t *testing.T, packed *anypb.Any) int {
	t.Helper()
	var a endpointv3.ClusterLoadAssignment
	if err := packed.UnmarshalTo(&a); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range a.GetEndpoints() {
		n += len(l.GetLbEndpoints())
	}
	return n
}

func clusterIn(t *testing.T, packed *anypb.Any) *clusterv3.Cluster {
	t.Helper()
	var c clusterv3.Cluster
	if err := packed.UnmarshalTo(&c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestPodsWithoutPolicies: the server by itself knows the pods of headless services,
// too.
func TestPodsWithoutPolicies(t *testing.T) {
	s := newPlainScene(t)
	s.service(headless(registry.ProtocolHTTP), endpoint("10.1.0.1", 80, "p", ""))
	if got := clusterOf(s.routes(node("sidecar"), "80"), "db-0."+database+":80"); got != databaseCluster {
		t.Errorf("a pod is behind %q", got)
	}
}
