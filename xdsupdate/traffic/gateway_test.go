// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdscheck"
	"github.com/pilotkit/pilotkit/registry"
)

// serverOf is a server of a Gateway; tls is "", "redirect", "pass", "auto" or the
// credential of a server that terminates TLS.
func serverOf(port uint32, protocol, tls string, hosts ...string) *networking.Server {
	s := &networking.Server{
		Port:  &networking.Port{Number: port, Name: fmt.Sprintf("%s-%d-%s", strings.ToLower(protocol), port, tls), Protocol: protocol},
		Hosts: hosts,
	}
	switch tls {
	case "":
	case "redirect":
		s.Tls = &networking.ServerTLSSettings{HttpsRedirect: true}
	case "pass":
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_PASSTHROUGH}
	case "auto":
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}
	default:
		s.Tls = &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: tls}
	}
	return s
}

func bound(bind string, s *networking.Server) *networking.Server {
	s.Bind = bind
	return s
}

func gatewayOf(servers ...*networking.Server) *networking.Gateway {
	return &networking.Gateway{Selector: map[string]string{"app": "edge"}, Servers: servers}
}

// toCart is a VirtualService that sends a path of some hosts to cart.
func toCart(path string, gateways []string, hosts ...string) *networking.VirtualService {
	return &networking.VirtualService{Hosts: hosts, Gateways: gateways, Http: []*networking.HTTPRoute{{
		Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: path}}}},
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "cart"}}},
	}}}
}

func edge() *proxy {
	return &proxy{role: router, namespace: "ingress", labels: registry.Labels{"app": "edge"}, addresses: []string{"10.9.0.3"}}
}

// describeRouter says what a router serves, one listener or virtual host a line.
func describeRouter(t *testing.T, st *state, p *proxy) []string {
	t.Helper()
	var out []string
	for _, name := range st.listenerNames(p) {
		l := st.listenerSent(p, name)
		if err := xdscheck.Envoy(l); err != nil {
			t.Error(err)
		}
		for _, c := range l.GetFilterChains() {
			line := name + ":"
			for _, n := range c.GetFilterChainMatch().GetServerNames() {
				line += " " + n
			}
			if c.GetTransportSocket() != nil {
				line += " TLS"
			}
			out = append(out, line+" "+describeFilter(t, c.GetFilters()[0]))
		}
	}
	for _, name := range st.routeNames(p) {
		rc := st.routesSent(p, name)
		if err := xdscheck.Envoy(rc); err != nil {
			t.Error(err)
		}
		for _, vh := range rc.GetVirtualHosts() {
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

func describeFilter(t *testing.T, f *listenerv3.Filter) string {
	t.Helper()
	if strings.HasSuffix(f.GetName(), "http_connection_manager") {
		return "HTTP"
	}
	var m tcp.TcpProxy
	if err := f.GetTypedConfig().UnmarshalTo(&m); err != nil {
		t.Fatal(err)
	}
	out := m.GetCluster()
	for _, w := range m.GetWeightedClusters().GetClusters() {
		out += fmt.Sprintf("%s*%d ", w.GetName(), w.GetWeight())
	}
	return strings.TrimSpace(out)
}

// cartWorld has services of the namespace shop, one of them spelled in upper case.
func cartWorld() world {
	external := testService("shop", "ext.shop.svc.cluster.local", 80)
	external.MeshExternal = true
	return newListWorld(
		testService("shop", "Cart.shop.svc.cluster.local", 8080),
		testService("shop", "catalog.shop.svc.cluster.local", 80, 90),
		testService("billing", "ledger.billing.svc.cluster.local", 80), external,
	)
}

const cartCluster = "outbound|8080||Cart.shop.svc.cluster.local"

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
			[]string{"0.0.0.0_80: " + cartCluster},
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
			[]string{"0.0.0.0_80: " + cartCluster},
		},
		{
			"a server of another bind has its own listener",
			gatewayOf(serverOf(80, "HTTP", "", "*"), bound("10.9.0.3", serverOf(80, "TCP", "", "*"))),
			gatewayOf(bound("0.0.0.0", serverOf(80, "HTTP", "", "*"))),
			[]string{"0.0.0.0_80: HTTP", "10.9.0.3_80: " + cartCluster, "http.80: *"},
		},
		{
			"TLS servers by their names", gatewayOf(serverOf(443, "HTTPS", "c", "B.com", "*.a.com")), gatewayOf(serverOf(443, "TLS", "d", "shop/c.com")),
			[]string{"0.0.0.0_443: *.a.com b.com TLS HTTP", "0.0.0.0_443: c.com TLS " + cartCluster, "https.443.https-443-c.a.ingress: *"},
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
			got := describeRouter(t, newState(newIndex(configs, newSettings(Options{})), cartWorld()), edge())
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
	st := newState(newIndex(configs, newSettings(Options{})), cartWorld())
	p := edge()
	p.addresses = []string{"fd00::3"}
	p.targetPorts = map[uint32]uint32{80: 8080}
	want := []string{"::_8080: HTTP", "http.8080: direct.com />" + cartCluster, "http.8080: b.com />" + cartCluster}
	if diff := cmp.Diff(want, describeRouter(t, st, p)); diff != "" {
		t.Errorf("a router of IPv6 behind a service (-want +got):\n%s", diff)
	}
	p = edge()
	p.labels = registry.Labels{"app": "other"}
	if got := describeRouter(t, st, p); got != nil {
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
	st := newState(newIndex(configs, newSettings(Options{})), cartWorld())
	const unknown = "outbound|80||cart.billing.svc.cluster.local"
	want := []string{
		"0.0.0.0_80: HTTP",
		"http.80: shop.com /cart>" + cartCluster + " /last>" + cartCluster,
		"http.80: x.shop.com redirect /cart>" + cartCluster + " />" + unknown,
		"http.80: *.shop.com redirect /last>" + cartCluster + " />" + unknown,
		"http.80: own.org redirect",
	}
	if diff := cmp.Diff(want, describeRouter(t, st, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
	rc := st.routesSent(edge(), "http.80")
	if rc == nil || st.routesSent(edge(), "http.81") != nil || st.listenerSent(edge(), "x") != nil {
		t.Errorf("by name: %v", rc)
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
	st := newState(newIndex(configs, newSettings(Options{})), cartWorld())
	const to = cartCluster + "*1 outbound|443|v1|catalog.shop.svc.cluster.local*3"
	auto := func(name string) string { return "0.0.0.0_443: " + strings.ToLower(name) + " " + name }
	want := []string{
		"0.0.0.0_443: t.com TLS HTTP", "0.0.0.0_443: a.p.com b.p.com " + to, "0.0.0.0_443: f.p.com " + to,
		auto("outbound_.8080_._.Cart.shop.svc.cluster.local"),
		auto("outbound_.80_._.catalog.shop.svc.cluster.local"), auto("outbound_.90_._.catalog.shop.svc.cluster.local"),
		"https.443.https-443-c.a.ingress: *",
	}
	if diff := cmp.Diff(want, describeRouter(t, st, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
}

// TestVirtualServicesOf: what is found by the names of a server is what comparing
// it with all VirtualServices finds, in the same order.
func TestVirtualServicesOf(t *testing.T) {
	names := []string{"a.x.com", "b.x.com", "*.x.com", "x.com", "*.com", "*", "a.y.org", "A.x.com", "*a.x.com"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		some := func(list []string) []string {
			out := slices.Clone(list)
			random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			return out[:1+random.IntN(3)]
		}
		var configs configList
		for i := range 12 {
			namespace := some([]string{"shop", "ingress", "billing"})[0]
			v := toCart("/", some([]string{"ingress/a", "ingress/b", "mesh"}), some(names)...)
			v.ExportTo = [][]string{nil, {"."}, {"ingress"}, {"*"}}[random.IntN(4)]
			configs.add(istio.VirtualService, fmt.Sprintf("%s/v%d", namespace, i), v)
		}
		hosts := some([]string{"a.x.com", "b.x.com", "shop/x.com", "./a.y.org", "q.com", "B.x.com"})
		configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", hosts...)))
		st, p := newState(newIndex(configs, newSettings(Options{})), cartWorld()), edge()
		s := st.gatewayListeners(p)[0].servers[0]
		var want, got []string
		for _, v := range st.virtualServicesFor("ingress/a", p.namespace) {
			if len(s.hostsOf(v)) > 0 {
				want = append(want, v.String())
			}
		}
		for _, v := range st.virtualServicesOf(p, s) {
			if len(s.hostsOf(v)) > 0 {
				got = append(got, v.String())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, hosts %q (-want +got):\n%s", seed, hosts, diff)
		}
	}
}
