// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// gatewayObjects are a gateway for HTTP, TCP and HTTPS with client certificates.
const gatewayObjects = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: echo, namespace: ingress}
spec:
  hosts: [echo.local.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: p, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {p: ECHO}}]
---` + edgeServers + `
  - {port: {number: PLAIN, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - {port: {number: RAW, name: tcp, protocol: TCP}, bind: 127.0.0.1, hosts: ["*"]}
  - port: {number: SECURE, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: ["*"]
    tls: {mode: MUTUAL, credentialName: edge}
---` + shopRoutes + `
  - match: [{uri: {prefix: /old}}]
    rewrite: {uri: /new}
    route: [{destination: {host: shop.local.test}}]
  - match: [{uri: {prefix: /teapot}}]
    directResponse: {status: 418}
  - match: [{uri: {prefix: /shop}}]
    route: [{destination: {host: shop.local.test}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: echo, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  tcp: [{route: [{destination: {host: echo.local.test}}]}]
`

// gateway is one with traffic.
type gateway struct {
	*plane
	proxy            *envoyproxy.Proxy
	http, tcp, https string
	one, two         *backend
	authority        *authority
}

// withoutMeshTLS is a mesh whose proxies have no certificates.
func withoutMeshTLS() *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{EnableAutoMtls: wrapperspb.Bool(false)}
}

// startGateway runs a gateway for two HTTP backends and an echo server.
func startGateway(t *testing.T, delta bool) *gateway {
	t.Helper()
	ports := envoyproxy.FreePorts(t, 3)
	port := func(i int) string { return strconv.Itoa(int(ports[i])) }
	g := &gateway{
		plane: startPlane(t, planeOptions{mesh: withoutMeshTLS()}),
		http:  port(0), tcp: port(1), https: port(2),
		one: startBackend(t, "one"), two: startBackend(t, "two"), authority: newAuthority(t),
	}
	g.vault.set("ingress", "kubernetes://edge", g.authority.secret("shop.example.com"))
	g.endpoints(g.one, g.two)
	g.Apply(gatewayObjects, "ECHO", startEcho(t), "PLAIN", g.http, "RAW", g.tcp, "SECURE", g.https)
	g.Applied()
	g.proxy = g.edge(delta)
	g.proxy.AwaitReady()
	return g
}

// endpoints sets the endpoints of the service to the backends.
func (g *gateway) endpoints(backends ...*backend) {
	g.TB.Helper()
	g.Apply(serviceEntry("shop.local.test", "HTTP", backends...))
}

// serviceEntry is a ServiceEntry of a host whose port 80 backends serve.
func serviceEntry(host, protocol string, backends ...*backend) string {
	text := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: ingress}
spec:
  hosts: [%s]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: p, protocol: %s}]
  endpoints:
`, host, host, protocol)
	for _, b := range backends {
		text += fmt.Sprintf("  - {address: 127.0.0.1, ports: {p: %s}, labels: {version: %s}}\n", b.port(), b.name)
	}
	return text
}

func local(port string) string { return net.JoinHostPort("127.0.0.1", port) }

// get sends a request for shop.example.com to a port of the gateway.
func (g *gateway) get(transport http.RoundTripper, scheme, port, path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(g.TB.Context(), http.MethodGet, scheme+"://"+local(port)+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = "shop.example.com"
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// TestGateway sends all kinds of traffic through one gateway.
func TestGateway(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		g := startGateway(t, delta)
		t.Run("HTTP", g.testHTTP)
		t.Run("TCP", g.testTCP)
		t.Run("TLS", g.testTLS)
		t.Run("leaving endpoints", g.testLeaving)
		g.Accepted()
		if refused := g.proxy.Refused(); len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
	})
}

func (g *gateway) testHTTP(t *testing.T) {
	transport := newTransport(t)
	answers := make(map[string]int)
	for range 40 {
		status, body, err := g.get(transport, "http", g.http, "/shop/x")
		if err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v", status, err)
		}
		answers[body]++
	}
	if len(answers) != 2 || answers["one /shop/x"] == 0 || answers["two /shop/x"] == 0 {
		t.Errorf("answers: %v", answers)
	}
	if status, body, err := g.get(transport, "http", g.http, "/old/x"); err != nil || status != http.StatusOK || body[4:] != "/new/x" {
		t.Errorf("rewritten path: status %d, %q, %v", status, body, err)
	}
	for path, want := range map[string]int{"/teapot": http.StatusTeapot, "/unknown": http.StatusNotFound} {
		if status, _, err := g.get(transport, "http", g.http, path); err != nil || status != want {
			t.Errorf("%s: status %d, %v; want %d", path, status, err, want)
		}
	}
}

// newTransport returns one whose connections are closed with the test.
func newTransport(tb testing.TB) *http.Transport {
	tb.Helper()
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	return transport
}

func (g *gateway) testTCP(t *testing.T) {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", local(g.tcp))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"hello", "again"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Errorf("echo of %q: %q, %v", text, got, err)
		}
	}
}

func (g *gateway) testTLS(t *testing.T) {
	call := func(certificates ...tls.Certificate) (int, error) {
		transport := newTransport(t)
		transport.TLSClientConfig = &tls.Config{
			RootCAs: g.authority.Pool(), ServerName: "shop.example.com", Certificates: certificates, MinVersion: tls.VersionTLS12,
		}
		status, _, err := g.get(transport, "https", g.https, "/shop")
		return status, err
	}
	if status, err := call(g.authority.pair(t, "client.example.com")); err != nil || status != http.StatusOK {
		t.Errorf("with a client certificate: status %d, %v", status, err)
	}
	if status, err := call(); err == nil {
		t.Errorf("without a client certificate: status %d", status)
	}
	if status, err := call(newAuthority(t).pair(t, "client.example.com")); err == nil {
		t.Errorf("with a certificate of another authority: status %d", status)
	}
}

// testLeaving: endpoints leave and return under load, and not one request fails.
func (g *gateway) testLeaving(t *testing.T) {
	load := startLoad(t, 4, func(transport *http.Transport) (answer string, err error) {
		status, body, err := g.get(transport, "http", g.http, "/shop")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return body, err
	})
	for range 3 {
		load.await("one /shop")
		g.endpoints(g.two)
		g.Applied()
		load.more(200)
		g.endpoints(g.one, g.two)
		g.Applied()
	}
	load.await("one /shop")
	load.end()
}
