// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/anypb"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const (
	cart        = "cart.shop.svc.cluster.local"
	cartCluster = "outbound|80||" + cart
	oldCart     = "old.shop.svc.cluster.local"
	olderCart   = "older.shop.svc.cluster.local"
)

// alias is a service of type ExternalName, which needs no port.
func alias(host, target string) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(host), Resolution: registry.Alias, MeshExternal: true,
		Attributes: registry.ServiceAttributes{Kubernetes: &registry.KubernetesAttributes{Type: "ExternalName", ExternalName: target}},
	}
}

func httpService(host string) *registry.Service {
	return &registry.Service{
		Hostname: registry.Hostname(host), Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	}
}

// TestAliases: what is sent to an alias goes to the service that it stands for, by its
// routes, through other aliases; loops, and names outside the registry, are nobody's.
func TestAliases(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(httpService(cart))
	s.service(alias(oldCart, "Cart.shop.svc.cluster.local."))
	s.service(alias(olderCart, oldCart))
	s.service(alias("a.shop.svc.cluster.local", "b.shop.svc.cluster.local"))
	s.service(alias("b.shop.svc.cluster.local", "a.shop.svc.cluster.local"))
	s.service(alias("far.shop.svc.cluster.local", "www.example.com"))
	hidden := alias("hidden.shop.svc.cluster.local", cart)
	hidden.Attributes.ExportTo = []registry.Visibility{"billing"}
	s.service(hidden)
	check := func(about string, want map[string]string) {
		t.Helper()
		rc := s.routes(node("sidecar"), "80")
		for host, cluster := range want {
			if got := clusterOf(rc, host); got != cluster {
				t.Errorf("%s: %s leads to %q, want %q", about, host, got, cluster)
			}
		}
	}
	check("default routes", map[string]string{
		cart: cartCluster, oldCart: cartCluster, oldCart + ".": cartCluster, "old": cartCluster, "old.shop": cartCluster,
		olderCart: cartCluster, "older.shop.svc": cartCluster, "a.shop.svc.cluster.local": "PassthroughCluster",
		"far.shop.svc.cluster.local": "PassthroughCluster", "hidden.shop.svc.cluster.local": "PassthroughCluster",
	})
	s.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart, "shop.example.com"], http: [{route: [{destination: {host: older, subset: v1}}]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old}
spec: {hosts: [old], http: [{route: [{destination: {host: elsewhere}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec: {host: cart, subsets: [{name: v1}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: old}
spec: {host: old, trafficPolicy: {tls: {mode: SIMPLE}}}
`)
	check("routes of VirtualServices", map[string]string{
		cart: "outbound|80|v1|" + cart, oldCart: "outbound|80|v1|" + cart, "older": "outbound|80|v1|" + cart,
		"shop.example.com": "outbound|80|v1|" + cart,
	})
	for _, want := range []string{
		"VirtualService shop/old: spec.hosts[0]: it is another name for " + cart,
		"DestinationRule shop/old: spec.host: it is another name for " + cart,
	} {
		if !s.found(want) {
			t.Errorf("not reported: %s; but %q", want, s.policies.Ineffective())
		}
	}
	if s.found("shop/cart: spec.http") || s.found("shop/cart: spec.hosts[0]") {
		t.Errorf("what counts is reported: %q", s.policies.Ineffective())
	}
}

// TestAliasesOfGRPCClients: a client may dial an alias, in short, too.
func TestAliasesOfGRPCClients(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(httpService(cart))
	s.service(alias(oldCart, cart))
	for _, target := range []string{oldCart + ":80", "old:80", oldCart} {
		if s.listener(node("grpc"), target) == nil {
			t.Errorf("the target %s is not found", target)
		}
	}
	if got := clusterOf(s.routes(node("grpc"), cartCluster), oldCart+":80"); got != cartCluster {
		t.Errorf("calls of the alias go to %q", got)
	}
}

// TestAliasesFollow: a client that is there learns that an alias came, stands for
// another service and is gone, as that the service behind it changes. Routes of
// gateways that lead to the alias do, too.
func TestAliasesFollow(t *testing.T) {
	s := newScene(t, traffic.Options{})
	const other = "other.shop.svc.cluster.local"
	s.service(httpService(cart))
	s.service(httpService(other))
	s.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old}
spec: {hosts: [old.example.com], gateways: [edge], http: [{route: [{destination: {host: older}}]}]}
`)
	side, gate := s.connect(node("sidecar")), s.connect(node("router"))
	s.must(side.Subscribe(envoy.RouteType, "80"))
	s.must(gate.Subscribe(envoy.RouteType, "http.80"))
	follow := func(about, forSidecar, forGateway string) {
		t.Helper()
		for _, of := range []struct {
			client           *xdstest.Client
			name, host, want string
		}{{side, "80", olderCart, forSidecar}, {gate, "http.80", "old.example.com", forGateway}} {
			t.Log(about, of.name)
			s.await(of.client, func(st xdstest.State) bool {
				r, ok := st.Resources(envoy.RouteType)[of.name]
				return ok && clusterOf(routesIn(t, r.Any), of.host) == of.want
			})
		}
	}
	follow("no alias", "PassthroughCluster", "outbound|80||"+olderCart)
	s.service(alias(olderCart, oldCart))
	follow("half a chain", "PassthroughCluster", "outbound|80||"+oldCart)
	s.service(alias(oldCart, cart))
	follow("a chain", cartCluster, cartCluster)
	s.service(alias(oldCart, other))
	follow("another service", "outbound|80||"+other, "outbound|80||"+other)
	s.must(s.kubernetes.RemoveService(oldCart, "shop"))
	s.flush()
	follow("no alias any more", "PassthroughCluster", "outbound|80||"+oldCart)
	s.service(alias(oldCart, cart))
	moved := httpService(cart)
	moved.Ports[0].Number = 81
	s.service(moved)
	follow("another port", "PassthroughCluster", "outbound|81||"+cart)
}

func routesIn(t *testing.T, packed *anypb.Any) *routev3.RouteConfiguration {
	t.Helper()
	var rc routev3.RouteConfiguration
	if err := packed.UnmarshalTo(&rc); err != nil {
		t.Fatal(err)
	}
	return &rc
}

// TestPoliciesBehindAliases: a Sidecar that imports a route to an alias imports what the
// alias stands for, when that comes later, too; a gateway that has only the clusters
// of its routes has it; and routes to the alias have the hash of its DestinationRule.
func TestPoliciesBehindAliases(t *testing.T) {
	s := newScene(t, traffic.Options{FilterGatewayClusters: true})
	s.service(alias(oldCart, cart))
	s.service(httpService("other.shop.svc.cluster.local"))
	s.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old}
spec: {hosts: [old.example.com], gateways: [edge, mesh], http: [{route: [{destination: {host: old}}]}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default}
spec: {egress: [{hosts: ["./old.example.com"]}]}
`)
	side, gate := s.connect(node("sidecar")), s.connect(node("router"))
	s.must(side.Subscribe(envoy.ClusterType))
	s.must(gate.Subscribe(envoy.ClusterType))
	s.must(gate.Subscribe(envoy.RouteType, "http.80"))
	s.await(side, func(st xdstest.State) bool { return st.Has(envoy.ClusterType, "PassthroughCluster") })
	s.await(gate, func(st xdstest.State) bool { return st.Has(envoy.RouteType, "http.80") })
	s.service(httpService(cart))
	for _, c := range []*xdstest.Client{side, gate} {
		s.await(c, func(st xdstest.State) bool { return st.Has(envoy.ClusterType, cartCluster) })
		if c.State().Has(envoy.ClusterType, "outbound|80||other.shop.svc.cluster.local") {
			t.Error("a service that is not imported has a cluster")
		}
	}
	s.apply(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec: {host: cart, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}}
`)
	s.await(gate, func(st xdstest.State) bool {
		routes := hostOf(routesIn(t, st.Resources(envoy.RouteType)["http.80"].Any), "old.example.com").GetRoutes()
		return len(routes) == 1 && len(routes[0].GetRoute().GetHashPolicy()) == 1
	})
}
