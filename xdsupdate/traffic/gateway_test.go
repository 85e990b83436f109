// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// describeRouter says what a router is sent, one filter chain or virtual host a line.
func describeRouter(s *scene, n *core.Node) []string {
	s.t.Helper()
	return describeResources(s.t, s.ask(n, envoy.ListenerType).resources, s.ask(n, envoy.RouteType).resources)
}

func describeResources(tb testing.TB, listeners, routes map[string]proto.Message) []string {
	tb.Helper()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(listeners)) {
		for _, c := range listeners[name].(*listenerv3.Listener).GetFilterChains() {
			line := name + ":"
			for _, n := range c.GetFilterChainMatch().GetServerNames() {
				line += " " + n
			}
			if c.GetTransportSocket() != nil {
				line += " TLS"
			}
			out = append(out, line+" "+describeFilter(tb, c.GetFilters()[0]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		for _, vh := range routes[name].(*routev3.RouteConfiguration).GetVirtualHosts() {
			line := name + ": " + strings.Join(vh.GetDomains(), " ")
			if vh.GetRequireTls() == routev3.VirtualHost_ALL {
				line += " redirect"
			}
			for _, r := range vh.GetRoutes() {
				line += " " + r.GetMatch().GetPrefix() + ">" + r.GetRoute().GetCluster()
			}
			out = append(out, line)
		}
	}
	return out
}

func describeFilter(tb testing.TB, f *listenerv3.Filter) string {
	tb.Helper()
	if strings.HasSuffix(f.GetName(), "http_connection_manager") {
		return "HTTP"
	}
	var m tcp.TcpProxy
	if err := f.GetTypedConfig().UnmarshalTo(&m); err != nil {
		tb.Fatal(err)
	}
	out := m.GetCluster()
	for _, w := range m.GetWeightedClusters().GetClusters() {
		out += fmt.Sprintf("%s*%d ", w.GetName(), w.GetWeight())
	}
	return strings.TrimSpace(out)
}

// TestGatewayMerging: servers in the order of their Gateways, what conflicts with
// an earlier one left out.
func TestGatewayMerging(t *testing.T) {
	var tcpRoutes configList
	tcpRoutes.add(istio.VirtualService, "shop/all", &networking.VirtualService{
		Hosts: []string{"*"}, Gateways: []string{"ingress/a", "ingress/b"},
		Tcp: []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "cart"}}}}},
	})
	for _, tc := range []struct {
		name string
		a, b *networking.Gateway
		want []string
	}{
		{
			"plain HTTP joins whatever its version", gatewayOf(serverOf(80, "HTTP", "", "a.com")), gatewayOf(serverOf(80, "GRPC", "", "b.com")),
			[]string{"0.0.0.0_80: HTTP", "http.80: *"},
		},
		{
			"TCP and HTTP do not go together", gatewayOf(serverOf(80, "TCP", "", "*")), gatewayOf(serverOf(80, "HTTP", "", "*")),
			[]string{"0.0.0.0_80: " + cartOutbound},
		},
		{
			"nor HTTP and TCP", gatewayOf(serverOf(80, "HTTP", "", "*")), gatewayOf(serverOf(80, "TCP", "", "*")),
			[]string{"0.0.0.0_80: HTTP", "http.80: *"},
		},
		{
			"nor plain and TLS", gatewayOf(serverOf(80, "HTTP", "", "*")), gatewayOf(serverOf(80, "HTTPS", "c", "*")),
			[]string{"0.0.0.0_80: HTTP", "http.80: *"},
		},
		{
			"nor TLS and plain", gatewayOf(serverOf(443, "HTTPS", "c", "*")), gatewayOf(serverOf(443, "TCP", "", "*")),
			[]string{"0.0.0.0_443: TLS HTTP", "https.443.https-443-c.a.ingress: *"},
		},
		{
			"a second TCP server", gatewayOf(serverOf(80, "TCP", "", "*")), gatewayOf(serverOf(80, "TCP", "", "b.com")),
			[]string{"0.0.0.0_80: " + cartOutbound},
		},
		{
			"a server of another bind has its own listener",
			gatewayOf(serverOf(80, "HTTP", "", "*"), bound("10.9.0.3", serverOf(80, "TCP", "", "*"))),
			gatewayOf(bound("0.0.0.0", serverOf(80, "HTTP", "", "*"))),
			[]string{"0.0.0.0_80: HTTP", "10.9.0.3_80: " + cartOutbound, "http.80: *"},
		},
		{
			"TLS servers by their names", gatewayOf(serverOf(443, "HTTPS", "c", "B.com", "*.a.com")), gatewayOf(serverOf(443, "TLS", "d", "shop/c.com")),
			[]string{"0.0.0.0_443: *.a.com b.com TLS HTTP", "0.0.0.0_443: c.com TLS " + cartOutbound, "https.443.https-443-c.a.ingress: c.com />"},
		},
		{
			"a shared host leaves out a TLS server as a whole, whatever the namespaces",
			gatewayOf(serverOf(443, "HTTPS", "c", "shop/a.com")), gatewayOf(serverOf(443, "HTTPS", "d", "b.com", "billing/A.com")),
			[]string{"0.0.0.0_443: a.com TLS HTTP", "https.443.https-443-c.a.ingress: *"},
		},
		{
			"*/* is *, and the hosts beside it stay", gatewayOf(serverOf(443, "HTTPS", "c", "*/*", "shop/a.com")), gatewayOf(serverOf(443, "HTTPS", "d", "*")),
			[]string{"0.0.0.0_443: TLS HTTP", "https.443.https-443-c.a.ingress: *"},
		},
		{"TLS without settings, and without a certificate", gatewayOf(serverOf(443, "HTTPS", "", "a.com")), gatewayOf(&networking.Server{
			Port: &networking.Port{Number: 444, Protocol: "TLS"}, Hosts: []string{"*"}, Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE},
		}), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			configs := slices.Clone(tcpRoutes)
			configs.add(istio.Gateway, "ingress/a", tc.a)
			configs.add(istio.Gateway, "ingress/b", tc.b)
			got := describeRouter(stage(t, traffic.Options{}, configs, cartPopulation()), edge())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("router (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGatewayAddresses(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*"), serverOf(8080, "HTTP", "", "direct.com")))
	configs.add(istio.VirtualService, "shop/cart", toCart("/", []string{"ingress/a"}, "direct.com", "b.com"))
	before := testService("ingress", "edge.ingress.svc.cluster.local", 80)
	services := cartPopulation()
	services.services = append(services.services, before)
	services.place(before, "fd00::3 port=8080")
	s := stage(t, traffic.Options{}, configs, services)
	want := []string{"::_8080: HTTP", "http.8080: direct.com />" + cartOutbound, "http.8080: b.com />" + cartOutbound}
	if diff := cmp.Diff(want, describeRouter(s, at(edge(), "fd00::3"))); diff != "" {
		t.Errorf("a router of IPv6 behind a service (-want +got):\n%s", diff)
	}
	if got := describeRouter(s, in("router", "ingress", "app=other")); got != nil {
		t.Errorf("a router that is not selected: %q", got)
	}
}

// TestGatewayHosts: names are compared without case and lead to services as they
// are spelled, a VirtualService has its routes once, and redirects are for hosts
// without their namespaces.
func TestGatewayHosts(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(
		serverOf(80, "HTTP", "", "Shop.com", "billing/*.shop.com"), serverOf(80, "HTTP", "redirect", "*.shop.com", "shop/own.org")))
	configs.add(istio.VirtualService, "shop/cart", toCart("/cart", []string{"ingress/a"}, "SHOP.com", "x.shop.com"))
	configs.add(istio.VirtualService, "billing/all", toCart("/", []string{"ingress/a"}, "x.shop.com", "*.shop.com"))
	configs.add(istio.VirtualService, "shop/last", toCart("/last", []string{"ingress/a"}, "*.com"))
	configs.add(istio.VirtualService, "shop/hidden", &networking.VirtualService{
		Hosts: []string{"shop.com"}, Gateways: []string{"ingress/a"}, ExportTo: []string{"."}, Http: toCart("/h", nil).GetHttp(),
	})
	s := stage(t, traffic.Options{}, configs, cartPopulation())
	const unknown = "outbound|80||cart.billing.svc.cluster.local"
	want := []string{
		"0.0.0.0_80: HTTP",
		"http.80: shop.com /cart>" + cartOutbound + " /last>" + cartOutbound,
		"http.80: x.shop.com redirect /cart>" + cartOutbound + " />" + unknown,
		"http.80: *.shop.com redirect /last>" + cartOutbound + " />" + unknown,
		"http.80: own.org redirect",
	}
	if diff := cmp.Diff(want, describeRouter(s, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
	if rc, other := s.routes(edge(), "http.80"), s.routes(edge(), "http.81"); len(rc.GetVirtualHosts()) == 0 || len(other.GetVirtualHosts()) > 0 {
		t.Errorf("by name: %v, %v", rc, other)
	}
	if l := s.listener(edge(), "x"); l != nil {
		t.Errorf("by name: %v", l)
	}
}

// TestHiddenDestination: the only port of a service is that of a destination without port if the
// router sees the service, also if the service is one of the VirtualService's namespace.
func TestHiddenDestination(t *testing.T) {
	for exportTo, want := range map[string]string{".": "outbound|8080||cart.com", "'*'": "outbound|80||cart.com"} {
		s := newScene(t, traffic.Options{})
		s.apply(fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart}
spec: {hosts: [cart.com], ports: [{number: 80, name: http, protocol: HTTP}], exportTo: [%s]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: a, namespace: ingress}
spec: {selector: {app: edge}, servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ['*']}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [shop.com], gateways: [ingress/a], http: [{route: [{destination: {host: cart.com}}]}]}
`, exportTo))
		if got := clusterOf(s.routes(edge(), "http.8080"), "shop.com"); got != want {
			t.Errorf("exported to %s: %s, want %s", exportTo, got, want)
		}
	}
}

// TestPassthrough: filter chains by server names, of which none is there twice.
func TestPassthrough(t *testing.T) {
	tlsRoute := func(gateways []string, port uint32, sni ...string) *networking.TLSRoute {
		return &networking.TLSRoute{
			Match: []*networking.TLSMatchAttributes{{SniHosts: sni, Port: port, Gateways: gateways}},
			Route: []*networking.RouteDestination{
				{Destination: &networking.Destination{Host: "cart"}, Weight: 1},
				{Destination: &networking.Destination{Host: "catalog", Subset: "v1"}, Weight: 3},
			},
		}
	}
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(
		serverOf(443, "HTTPS", "c", "t.com"), serverOf(443, "TLS", "pass", "*.p.com"), serverOf(443, "TLS", "auto", "*.shop.svc.cluster.local")))
	configs.add(istio.VirtualService, "shop/p", &networking.VirtualService{
		Hosts: []string{"a.p.com", "b.p.com"}, Gateways: []string{"ingress/a"},
		Tls: []*networking.TLSRoute{
			tlsRoute(nil, 0, "b.p.com", "a.p.com"), tlsRoute(nil, 0, "c.p.com", "A.p.com"), tlsRoute(nil, 444, "d.p.com"),
			tlsRoute([]string{"mesh"}, 0, "e.p.com"), tlsRoute([]string{"ingress/a"}, 443, "f.p.com"), tlsRoute(nil, 0, "t.com"), tlsRoute(nil, 0, "*x.com"),
		},
	})
	configs.add(istio.VirtualService, "shop/other", &networking.VirtualService{
		Hosts: []string{"q.com"}, Gateways: []string{"ingress/a"}, Tls: []*networking.TLSRoute{tlsRoute(nil, 0, "q.com")},
	})
	s := stage(t, traffic.Options{}, configs, cartPopulation())
	const to = cartOutbound + "*1 outbound|443|v1|catalog.shop.svc.cluster.local*3"
	auto := func(name string) string { return "0.0.0.0_443: " + strings.ToLower(name) + " " + name }
	want := []string{
		"0.0.0.0_443: t.com TLS HTTP", "0.0.0.0_443: a.p.com b.p.com " + to, "0.0.0.0_443: f.p.com " + to,
		auto("outbound_.8080_._.Cart.shop.svc.cluster.local"),
		auto("outbound_.80_._.catalog.shop.svc.cluster.local"), auto("outbound_.90_._.catalog.shop.svc.cluster.local"),
		"https.443.https-443-c.a.ingress: a.p.com b.p.com f.p.com />",
	}
	if diff := cmp.Diff(want, describeRouter(s, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
}
