// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestGrowingTenant: VirtualServices of a namespace that are older than those of others, and grow until there is no
// room for all, take nothing from the others; of the namespace's own the oldest stay.
func TestGrowingTenant(t *testing.T) {
	for name, limits := range map[string]traffic.Limits{"bytes": {SharedBytes: 20_000}, "virtual hosts": {VirtualHosts: 12}} {
		var configs configList
		configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
		for i := range 20 {
			configs.add(istio.VirtualService, fmt.Sprintf("evil/v%02d", i),
				toCart("/"+strings.Repeat("x", 1500), []string{"mesh", "ingress/a"}, fmt.Sprintf("e%02d.example.com", i)))
		}
		for _, namespace := range []string{"shop", "billing"} {
			for i := range 3 {
				configs.add(istio.VirtualService, fmt.Sprintf("%s/v%d", namespace, i),
					toCart("/", []string{"mesh", "ingress/a"}, fmt.Sprintf("%s%d.example.com", namespace, i)))
			}
		}
		s := stage(t, traffic.Options{Limits: limits}, configs, cartPopulation())
		for client, n := range map[string]*core.Node{"http.80": edge(), "80": in("sidecar", "shop")} {
			got := hostsOfRoutes(s, n, client)
			for _, host := range []string{"shop0", "shop2", "billing0", "billing2", "e00", "e03"} {
				if got[host+".example.com"] != "served" {
					t.Errorf("%s, %s: %s is %q", name, client, host, got[host+".example.com"])
				}
			}
			if got["e19.example.com"] != "500" {
				t.Errorf("%s, %s: the newest of the largest is %q", name, client, got["e19.example.com"])
			}
		}
		if s.reason("v19", "spec.http") == "" || s.reason("v2", "spec.http") != "" {
			t.Errorf("%s: reported are %q", name, s.ineffective())
		}
	}
}

// TestManyRoutesOfOneHost: routes of a namespace for hosts of another, which are more than a virtual host may have, leave
// those of the other in place.
func TestManyRoutesOfOneHost(t *testing.T) {
	many := toCart("/", []string{"ingress/a"}, "*.example.com")
	many.Http[0].Match = matchesOf(60, "x")
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "a.example.com", "b.example.com")))
	configs.add(istio.VirtualService, "evil/many", many)
	configs.add(istio.VirtualService, "shop/few", toCart("/few", []string{"ingress/a"}, "a.example.com"))
	s := stage(t, traffic.Options{Limits: traffic.Limits{Routes: 60}}, configs, cartPopulation())
	if text := fmt.Sprint(s.routes(edge(), "http.80")); !strings.Contains(text, "/few") {
		t.Errorf("the routes are %s", text)
	}
	if s.reason("few", "spec.http") != "" || s.reason("many", "spec.http") == "" {
		t.Errorf("reported are %q", s.ineffective())
	}
}

// tenantServices are old services of evil with many ports, and a young one of shop.
func tenantServices() *population {
	var services []*registry.Service
	for i := range 5 {
		s := testService("evil", registry.Hostname(fmt.Sprintf("e%d.example.com", i)), 80, 81, 82, 83)
		s.CreationTime = time.Unix(int64(i), 0)
		services = append(services, s)
	}
	young := testService("shop", "s.example.com", 80)
	young.CreationTime = time.Unix(100, 0)
	return populate(append(services, young)...)
}

// TestServicesOfATenant: services of one namespace, old ones with many ports, do not take the subsets, hashes, policies and filter
// chains from the services of another for which one object is about both.
func TestServicesOfATenant(t *testing.T) {
	const young = "outbound|80||s.example.com"
	rule := objectsOf(t, `DestinationRule istio-system/r {"host":"*.example.com","subsets":[{"name":"v1"}],
		"trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x","ringHash":{"minimumRingSize":"1024"}}}}}`)
	s := stage(t, traffic.Options{Limits: traffic.Limits{Clusters: 8}}, rule, tenantServices())
	names := s.ask(in("sidecar", "shop"), envoy.ClusterType).names
	if !slices.Contains(names, "outbound|80|v1|s.example.com") || slices.Contains(names, "outbound|80|v1|e4.example.com") {
		t.Errorf("the clusters are %q", names)
	}
	s = stage(t, traffic.Options{Limits: traffic.Limits{HashEntries: 24 * 1024}}, rule, tenantServices())
	for name, hashed := range map[string]bool{young: true, "outbound|80||e0.example.com": true, "outbound|80||e4.example.com": false} {
		c, _ := s.send(in("sidecar", "shop"), envoy.ClusterType, name).(*clusterv3.Cluster)
		if (c.GetLbPolicy() == clusterv3.Cluster_RING_HASH) != hashed {
			t.Errorf("%s is %v", name, c)
		}
	}
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(15443, "TLS", "auto", "*.example.com")))
	s = stage(t, traffic.Options{Limits: traffic.Limits{FilterChains: 9}}, configs, tenantServices())
	got := s.ask(edge(), envoy.ListenerType, "0.0.0.0_15443")
	if text := fmt.Sprint(got.resources["0.0.0.0_15443"]); !strings.Contains(text, "s.example.com") || !strings.Contains(text, "e1.example.com") ||
		strings.Contains(text, "e4.example.com") || len(got.failed) != 1 {
		t.Errorf("filter chains: %s, %q", text, got.failed)
	}
}

// TestRangesOfATenant: neither ranges nor server names of one namespace, which are too many together, take the TLS routes
// of another from a listener.
func TestRangesOfATenant(t *testing.T) {
	passing := func(key, host string, matches int, ranges string) string {
		var list []string
		for i := range matches {
			list = append(list, fmt.Sprintf(`{"sniHosts": ["h%d.%s"]%s}`, i, host, ranges))
		}
		return fmt.Sprintf(`VirtualService %s {"hosts": ["*.%s"], "gateways": ["infra/edge"], "tls": [{"match": [%s], "route": [{"destination": {"host": "cart"}}]}]}`,
			key, host, strings.Join(list, ","))
	}
	ranges := make([]string, 60)
	for i := range ranges {
		ranges[i] = fmt.Sprintf(`"10.9.%d.0/24"`, i)
	}
	for name, evil := range map[string]string{
		"ranges": passing("evil/v", "evil.p.com", 1, `, "destinationSubnets": [`+strings.Join(ranges, ",")+`]`),
		"names":  passing("evil/v", "evil.p.com", 60, ""),
	} {
		s := stage(t, traffic.Options{Limits: traffic.Limits{FilterChains: 100}}, objectsOf(t, passingGateway, evil,
			passing("shop/v", "shop.p.com", 1, `, "destinationSubnets": ["10.0.0.1"]`)), cartPopulation())
		got := s.ask(edge(), envoy.ListenerType, "0.0.0.0_443")
		if text := fmt.Sprint(got.resources["0.0.0.0_443"]); !strings.Contains(text, "h0.shop.p.com") || strings.Contains(text, "evil") {
			t.Errorf("%s: %s", name, text)
		}
		if s.reason("v", "spec.tls") == "" {
			t.Errorf("%s: reported are %q", name, s.ineffective())
		}
	}
}

// TestPoliciesRepeatedTooOften: filter chains of one namespace that would repeat the policies of a listener too often are
// closed, also where another server's name covers theirs, and are reported at their Gateway; those of others serve.
func TestPoliciesRepeatedTooOften(t *testing.T) {
	var configs configList
	var many []*networking.Server
	for i := range 40 {
		many = append(many, serverOf(443, "HTTPS", fmt.Sprint("c", i), fmt.Sprintf("e%d.example.com", i)))
	}
	configs.add(istio.Gateway, "evil/many", gatewayOf(many...))
	configs.add(istio.Gateway, "shop/own", gatewayOf(serverOf(443, "HTTPS", "c", "*.example.com")))
	configs.add(istio.Gateway, "billing/own", gatewayOf(serverOf(443, "HTTPS", "c", "billing.example.com")))
	configs.add(istio.VirtualService, "evil/v", toCart("/", []string{"evil/many"}, "*"))
	configs = append(configs, objectsOf(t,
		`AuthorizationPolicy istio-system/large {"rules": [{"to": [{"operation": {"paths": ["/`+strings.Repeat("a", 1000)+`"]}}]}]}`)...)
	s := stage(t, traffic.Options{Limits: traffic.Limits{SharedBytes: 20_000}}, configs, cartPopulation())
	answer := s.ask(edge(), envoy.ListenerType)
	l, _ := answer.resources["0.0.0.0_443"].(*listenerv3.Listener)
	served := map[string]bool{}
	for _, c := range l.GetFilterChains() {
		serves := strings.Contains(fmt.Sprint(c.GetFilters()), "http_connection_manager")
		if closed := strings.Contains(fmt.Sprint(c.GetFilters()), xdsbuild.BlackHole) && c.GetTransportSocket() == nil; serves == closed {
			t.Errorf("filter chain %v", c)
		}
		served[strings.Join(c.GetFilterChainMatch().GetServerNames(), " ")] = serves
	}
	if len(served) != 42 || !served["*.example.com"] || !served["billing.example.com"] || !served["e0.example.com"] || served["e39.example.com"] {
		t.Errorf("served are %v", served)
	}
	if failed := answer.failed["0.0.0.0_443"]; strings.Count(failed, "Gateway") != 1 || !strings.Contains(failed, "Gateway evil/many: spec.servers[") {
		t.Errorf("it is reported as %q", failed)
	}
	if !slices.ContainsFunc(s.ineffective(), func(e string) bool {
		return strings.HasPrefix(e, "Gateway evil/many: spec.servers[") && strings.Contains(e, "would have more than 20000 bytes")
	}) {
		t.Errorf("reported are %q", s.ineffective())
	}
}

// TestAddressOfAnother: a server on one address of a port on which another namespace already listens on all is left out and
// reported, whatever it serves (on routers of IPv6 alone it is not reported: it depends on the router); one of the same namespace, of another port or of another family is not.
func TestAddressOfAnother(t *testing.T) {
	for bind, tc := range map[string]struct {
		namespace string
		port      uint32
		node      *core.Node
		all       string
		left      bool
	}{
		"127.0.0.1":       {"evil", 443, edge(), "", true},
		"10.9.0.3":        {"evil", 443, edge(), "0.0.0.0", true},
		"::ffff:10.9.0.3": {"evil", 443, edge(), "", true},
		"::1":             {"evil", 443, at(edge(), "fd00::3"), "", true},
		"fd00::3":         {"evil", 443, edge(), "::", true},
		"127.0.0.2":       {"ingress", 443, edge(), "", false},
		"127.0.0.3":       {"evil", 8443, edge(), "", false},
		"::2":             {"evil", 443, edge(), "", false},
	} {
		for _, server := range []*networking.Server{
			serverOf(tc.port, "HTTPS", "c", "a.example.com"), serverOf(tc.port, "HTTPS", "c", "*"), serverOf(tc.port, "TLS", "pass", "*"),
		} {
			var configs configList
			configs.add(istio.Gateway, "ingress/a", gatewayOf(bound(tc.all, serverOf(443, "HTTPS", "c", "a.example.com"))))
			configs.add(istio.Gateway, tc.namespace+"/thief", gatewayOf(bound(bind, server)))
			v := toCart("/", []string{"ingress/a", tc.namespace + "/thief"}, "a.example.com")
			v.Tls = []*networking.TLSRoute{{
				Match: []*networking.TLSMatchAttributes{{SniHosts: []string{"a.example.com"}}},
				Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "cart"}}},
			}}
			configs.add(istio.VirtualService, "evil/v", v)
			s := stage(t, traffic.Options{}, configs, cartPopulation())
			listeners := s.ask(tc.node, envoy.ListenerType).names
			if want := map[bool]int{true: 1, false: 2}[tc.left]; len(listeners) != want {
				t.Errorf("%s, %v: the listeners are %q", bind, server, listeners)
			}
			if got := s.reason("thief", "spec.servers[0]"); bind != "::1" && (got != "") != tc.left {
				t.Errorf("%s: it is reported as %q", bind, got)
			}
		}
	}
}
