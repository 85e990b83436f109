// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const plainGateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {app: edge}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart.example.com], gateways: [edge], http: [{route: [{destination: {host: cart}}]}]}
`

// TestProxyConfigOfRouters: what a router says of its own configuration counts as a
// whole, instead of what the mesh says.
func TestProxyConfigOfRouters(t *testing.T) {
	s := newScene(t, traffic.Options{Mesh: &meshconfig.MeshConfig{DefaultConfig: &meshconfig.ProxyConfig{
		GatewayTopology: &meshconfig.Topology{NumTrustedProxies: 1},
	}}})
	s.apply(plainGateway)
	for _, tc := range []struct {
		name     string
		metadata []any
		proxied  bool // connections begin with the PROXY protocol
		trusted  uint32
		forward  hcm.HttpConnectionManager_ForwardClientCertDetails
		counts   bool // the numbers of attempts are sent
	}{
		{"nothing", nil, false, 1, hcm.HttpConnectionManager_SANITIZE_SET, true},
		{"empty", []any{"PROXY_CONFIG", map[string]any{}}, false, 0, hcm.HttpConnectionManager_SANITIZE_SET, true},
		{"not understood", []any{"PROXY_CONFIG", map[string]any{"gatewayTopology": "x"}}, false, 1, hcm.HttpConnectionManager_SANITIZE_SET, true},
		{
			"everything", []any{"PROXY_CONFIG", map[string]any{
				"discoveryAddress": "x:1", "unknown": 1,
				"gatewayTopology": map[string]any{
					"proxyProtocol": map[string]any{}, "numTrustedProxies": 3, "forwardClientCertDetails": "FORWARD_ONLY",
				},
				"proxyHeaders": map[string]any{"attemptCount": map[string]any{"disabled": true}, "server": map[string]any{"value": "shop"}},
			}}, true, 3, hcm.HttpConnectionManager_FORWARD_ONLY, false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			router := node("router", tc.metadata...)
			l := s.listener(router, "0.0.0.0_80")
			m := s.connectionManager(l)
			if got := hasListenerFilter(l, "envoy.filters.listener.proxy_protocol"); got != tc.proxied {
				t.Errorf("the PROXY protocol is expected: %t", got)
			}
			if m.GetXffNumTrustedHops() != tc.trusted || m.GetForwardClientCertDetails() != tc.forward {
				t.Errorf("%d proxies are trusted, client certificates %s", m.GetXffNumTrustedHops(), m.GetForwardClientCertDetails())
			}
			if got := m.GetServerName() == "shop"; got == tc.counts {
				t.Errorf("the server is called %q", m.GetServerName())
			}
			if got := hostOf(s.routes(router, "http.80"), "cart.example.com").GetIncludeRequestAttemptCount(); got != tc.counts {
				t.Errorf("the numbers of attempts are sent: %t", got)
			}
		})
	}
}

// TestInternalAddresses: the ranges of the networks are internal at gateways, as in Istio.
func TestInternalAddresses(t *testing.T) {
	var networks meshconfig.MeshNetworks
	spec(t, `{"networks": {
		"one": {"endpoints": [{"fromCidr": "10.1.0.0/16"}, {"fromRegistry": "x"}, {"fromCidr": "fd00::1"}, {"fromCidr": "10.0.0.1/16"}, {"fromCidr": "x"}]},
		"two": {"endpoints": [{"fromCidr": "10.0.0.0/16"}]}}}`, &networks)
	for _, tc := range []struct {
		networks *meshconfig.MeshNetworks
		want     string
	}{{nil, ""}, {&meshconfig.MeshNetworks{}, ""}, {&networks, "10.0.0.0/16 10.1.0.0/16 fd00::1/128"}} {
		s := newScene(t, traffic.Options{Networks: tc.networks})
		s.apply(plainGateway)
		var got []string
		for _, r := range s.connectionManager(s.listener(node("router"), "0.0.0.0_80")).GetInternalAddressConfig().GetCidrRanges() {
			got = append(got, fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue()))
		}
		if got := strings.Join(got, " "); got != tc.want {
			t.Errorf("internal are %q, want %q", got, tc.want)
		}
	}
}

func hasListenerFilter(l *listenerv3.Listener, name string) bool {
	for _, f := range l.GetListenerFilters() {
		if f.GetName() == name {
			return true
		}
	}
	return false
}

// TestListeningPorts: a router listens where the services in front of it forward to,
// also if it is there before its endpoint, unless the service says otherwise.
func TestListeningPorts(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.apply(plainGateway)
	c := s.connect(node("router"))
	s.must(c.Subscribe(envoy.ListenerType))
	listens := func(want string) {
		t.Helper()
		s.await(c, func(st xdstest.State) bool {
			return st.Has(envoy.ListenerType, want) && len(st.Names(envoy.ListenerType)) == 1
		})
	}
	listens("0.0.0.0_80")
	front := func(labels registry.Labels) *registry.Service {
		return &registry.Service{
			Hostname: "edge.shop.svc.cluster.local", Attributes: registry.ServiceAttributes{Labels: labels},
			Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		}
	}
	s.service(front(nil))
	listens("0.0.0.0_80")
	// From here on only endpoints change.
	s.endpoints("edge.shop.svc.cluster.local", endpoint("10.9.9.1", 8080, "http", ""))
	listens("0.0.0.0_8080")
	s.endpoints("edge.shop.svc.cluster.local", endpoint("10.9.9.1", 8081, "http", ""))
	listens("0.0.0.0_8081")
	s.endpoints("edge.shop.svc.cluster.local", endpoint("10.9.9.2", 8080, "http", ""))
	listens("0.0.0.0_80")
	s.service(front(nil), endpoint("10.9.9.1", 8080, "http", ""))
	listens("0.0.0.0_8080")
	s.endpoints("edge.shop.svc.cluster.local", endpoint("10.9.9.1", 8080, "http", ""), endpoint("10.9.9.7", 8087, "http", ""))
	late := node("router")
	late.Id = "router~10.9.9.7~late.shop~shop.svc.cluster.local"
	if s.listener(late, "0.0.0.0_8087") == nil {
		t.Error("a router that comes after its endpoint does not listen on its port")
	}
	s.service(front(registry.Labels{"experimental.istio.io/disable-gateway-port-translation": ""}), endpoint("10.9.9.1", 8080, "http", ""))
	listens("0.0.0.0_80")
}

// TestRedirectOnTLS: a server that terminates TLS redirects what a trusted proxy in
// front of it was sent in plain text.
func TestRedirectOnTLS(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {app: edge}
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: ["cart.example.com", "other.example.com"]
    tls: {mode: SIMPLE, credentialName: edge, httpsRedirect: true}
  - port: {number: 8443, name: plain, protocol: HTTPS}
    hosts: ["cart.example.com"]
    tls: {mode: SIMPLE, credentialName: edge}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart.example.com], gateways: [edge], http: [{route: [{destination: {host: cart}}]}]}
`)
	rc := s.routes(node("router"), "https.443.https.edge.shop")
	for host, routes := range map[string]int{"cart.example.com": 1, "other.example.com": 0} {
		vh := hostOf(rc, host)
		if vh.GetRequireTls() != routev3.VirtualHost_ALL || len(vh.GetRoutes()) != routes {
			t.Errorf("%s: %v", host, vh)
		}
	}
	if vh := hostOf(s.routes(node("router"), "https.8443.plain.edge.shop"), "cart.example.com"); vh == nil || vh.GetRequireTls() != routev3.VirtualHost_NONE {
		t.Errorf("a server without redirects has %v", vh)
	}
}

// TestForeignCredentials: names of secrets of providers beside proxies are reported.
func TestForeignCredentials(t *testing.T) {
	s := newScene(t, traffic.Options{})
	s.service(&registry.Service{
		Hostname: "cart.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	})
	s.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {app: edge}
  servers:
  - port: {number: 443, name: a, protocol: HTTPS}
    hosts: [a.example.com]
    tls: {mode: SIMPLE, credentialName: "sds://vault"}
  - port: {number: 443, name: b, protocol: HTTPS}
    hosts: [b.example.com]
    tls: {mode: SIMPLE, credentialName: known}
  - port: {number: 443, name: c, protocol: HTTPS}
    hosts: [c.example.com]
    tls: {mode: SIMPLE, credentialName: "kubernetes://known"}
  - port: {number: 443, name: d, protocol: HTTPS}
    hosts: [d.example.com]
    tls: {mode: SIMPLE, credentialName: "kubernetes-gateway://shop/known"}
  - port: {number: 443, name: e, protocol: HTTPS}
    hosts: [e.example.com]
    tls: {mode: MUTUAL, credentialName: "builtin://"}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec:
  host: cart
  trafficPolicy:
    portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE, credentialName: "sds://ports"}}]
  subsets: [{name: v1, trafficPolicy: {tls: {mode: SIMPLE, credentialName: "sds://subsets"}}}]
`)
	for _, want := range []string{
		`Gateway shop/edge: spec.servers[0].tls.credentialName: `,
		`DestinationRule shop/cart: spec.trafficPolicy.portLevelSettings[0].tls.credentialName: `,
		`DestinationRule shop/cart: spec.subsets[0].trafficPolicy.tls.credentialName: `,
	} {
		if !s.found(want) {
			t.Errorf("not reported: %s", want)
		}
	}
	for _, field := range []string{"servers[1].tls", "servers[2].tls", "servers[3].tls", "servers[4].tls"} {
		if s.found(field) {
			t.Errorf("%s, a secret of this server, is reported: %q", field, s.policies.Ineffective())
		}
	}
}
