// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
)

// meshRoutes lead to the servers of TestMeshTLS.
const meshRoutes = `
  - {match: [{uri: {prefix: /one}}], route: [{destination: {host: one.local.test}}]}
  - {match: [{uri: {prefix: /both}}], route: [{destination: {host: both.local.test}}]}
  - {match: [{uri: {prefix: /two}}], route: [{destination: {host: two.local.test}}]}
  - {match: [{uri: {prefix: /istio1}}], route: [{destination: {host: istio1.local.test}}]}
  - {match: [{uri: {prefix: /istio2}}], route: [{destination: {host: istio2.local.test}}]}
  - {route: [{destination: {host: grpc.local.test}}]}
`

// TestMeshTLS: mutual TLS of the mesh reaches servers that do not know Istio's application
// protocols, and servers that know only these.
func TestMeshTLS(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		m := &meshServers{t: t, issuer: newAuthority(t)}
		objects := m.http("one", "HTTP", "http/1.1") + m.http("both", "HTTP", "h2", "http/1.1") + m.http("two", "HTTP2", "h2") +
			m.inbound("istio1", "HTTP", hcm.HttpConnectionManager_HTTP1) + m.inbound("istio2", "HTTP2", hcm.HttpConnectionManager_HTTP2) + m.grpc()
		e := startEdge(t, delta, rules(meshRoutes))
		secret := m.issuer.secret("spiffe://cluster.local/ns/ingress/sa/edge")
		e.vault.set("ingress", "default", secret)
		e.vault.set("ingress", "ROOTCA", secret)
		e.Apply(strings.TrimSuffix(objects, "---"))
		e.Applied()
		for path, want := range map[string]string{
			"/one": "one HTTP/1.1", "/both": "both HTTP/1.1", "/two": "two HTTP/2.0", "/istio1": "istio1", "/istio2": "istio2",
		} {
			e.await(want+" at "+path, func() bool { return e.get(path).body == want })
		}
		e.callHealth()
		e.fine()
	})
}

// meshServers are servers that require a certificate of the mesh.
type meshServers struct {
	t      *testing.T
	issuer *authority
}

// entry is a service that is called by mutual TLS of the mesh.
func (m *meshServers) entry(name, protocol, port string) string {
	return service(name, protocol, onPort(port)) + "---" +
		policy(name, "  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}\n") + "---"
}

func (m *meshServers) config(protocols ...string) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{m.issuer.pair(m.t, "spiffe://cluster.local/ns/ingress/sa/server")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: m.issuer.Pool(), MinVersion: tls.VersionTLS12, NextProtos: protocols,
	}
}

// http is a server of net/http with some application protocols.
func (m *meshServers) http(name, protocol string, offered ...string) string {
	b := newVersionBackend(name)
	b.TLS, b.EnableHTTP2 = m.config(offered...), offered[0] == "h2"
	b.StartTLS()
	m.t.Cleanup(b.Close)
	return m.entry(name, protocol, portOf(b.Listener))
}

// grpc is a server of grpc-go that knows whether it is healthy.
func (m *meshServers) grpc() string {
	l := testserver.Listen(m.t, "127.0.0.1:0")
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(m.config())))
	healthpb.RegisterHealthServer(server, health.NewServer())
	testserver.Serve(m.t, l, server)
	return m.entry("grpc", "GRPC", portOf(l))
}

// callHealth asks the gRPC server by way of the gateway.
func (e *edge) callHealth() {
	e.TB.Helper()
	conn, err := grpc.NewClient("passthrough:///"+local(e.port), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("shop.example.com"))
	if err != nil {
		e.TB.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(e.TB.Context(), testTimeout)
	defer cancel()
	res, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		e.TB.Errorf("gRPC: %v, %v", res, err)
	}
}

// inbound is an Envoy that does as the sidecar of a server: it takes connections of
// clients that name Istio's application protocols and show a certificate, and answers.
func (m *meshServers) inbound(name, protocol string, codec hcm.HttpConnectionManager_CodecType) string {
	m.t.Helper()
	port := envoyproxy.FreePorts(m.t, 1)[0]
	listener := hostListener(m.t, port, &hcm.HttpConnectionManager{
		StatPrefix: name, CodecType: codec,
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: answering(name)},
		HttpFilters: []*hcm.HttpFilter{{
			Name: "envoy.filters.http.router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(m.t, &routerv3.Router{})},
		}},
	})
	listener.ListenerFilters = []*listenerv3.ListenerFilter{{
		Name: "inspector", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: pack(m.t, &inspectorv3.TlsInspector{})},
	}}
	chain := listener.GetFilterChains()[0]
	chain.FilterChainMatch = &listenerv3.FilterChainMatch{ApplicationProtocols: []string{"istio", "istio-peer-exchange"}}
	chain.TransportSocket = &core.TransportSocket{
		Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(m.t, m.downstream())},
	}
	proxy := envoyproxy.Start(m.t, envoyproxy.Options{Listeners: []*listenerv3.Listener{listener}})
	proxy.AwaitReady()
	return m.entry(name, protocol, fmt.Sprint(port))
}

// downstream asks clients for a certificate, and knows Istio's application protocols
// alone.
func (m *meshServers) downstream() *tlsv3.DownstreamTlsContext {
	inline := func(data []byte) *core.DataSource {
		return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: data}}
	}
	certificate, key := m.issuer.Issue("spiffe://cluster.local/ns/ingress/sa/server")
	return &tlsv3.DownstreamTlsContext{
		RequireClientCertificate: wrapperspb.Bool(true),
		CommonTlsContext: &tlsv3.CommonTlsContext{
			AlpnProtocols:   []string{"istio-peer-exchange", "istio"},
			TlsCertificates: []*tlsv3.TlsCertificate{{CertificateChain: inline(certificate), PrivateKey: inline(key)}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
				TrustedCa: inline(m.issuer.PEM()),
			}},
		},
	}
}

// answering are routes that answer everything with a body.
func answering(body string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{
		Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
				Status: 200, Body: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: body}},
			}},
		}},
	}}}
}
