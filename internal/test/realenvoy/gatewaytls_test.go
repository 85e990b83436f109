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

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

const gatewayModes = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: modes, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - port: {number: ASKING, name: optional, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: [shop.example.com]
    tls: {mode: OPTIONAL_MUTUAL, credentialName: edge}
  - port: {number: MODERN, name: modern, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: [shop.example.com]
    tls: {mode: SIMPLE, credentialName: edge, minProtocolVersion: TLSV1_3}
  - port: {number: RAW, name: raw, protocol: TLS}
    bind: 127.0.0.1
    hosts: [shop.example.com]
    tls: {mode: SIMPLE, credentialName: edge}
  - port: {number: REDIRECT, name: redirect, protocol: HTTP}
    bind: 127.0.0.1
    hosts: [shop.example.com]
    tls: {httpsRedirect: true}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: modes, namespace: ingress}
spec:
  hosts: [shop.example.com]
  gateways: [modes]
  http: [{directResponse: {status: 200}}]
  tcp: [{match: [{port: RAW}], route: [{destination: {host: echo.local.test}}]}]
`

// TestGatewayModes: what servers of a gateway ask of clients.
func TestGatewayModes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
		issuer := newAuthority(t)
		p.vault.set("ingress", "kubernetes://edge", issuer.secret("shop.example.com"))
		var port []string
		for _, n := range envoyproxy.FreePorts(t, 4) {
			port = append(port, strconv.Itoa(int(n)))
		}
		p.Apply(service("echo", "TCP", onPort(startEcho(t)))+"---"+gatewayModes,
			"ASKING", port[0], "MODERN", port[1], "RAW", port[2], "REDIRECT", port[3])
		p.Applied()
		proxy := p.edge(delta)
		proxy.AwaitReady()
		good, bad := issuer.pair(t, "client.example.com"), newAuthority(t).pair(t, "client.example.com")
		old := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
		with := func(pair tls.Certificate) func(c *tls.Config) {
			return func(c *tls.Config) { c.Certificates = []tls.Certificate{pair} }
		}
		for _, c := range []struct {
			name, port string
			edit       func(*tls.Config)
			fails      bool
		}{
			{"optional, none", port[0], func(*tls.Config) {}, false},
			{"optional, a good one", port[0], with(good), false},
			{"optional, a bad one", port[0], with(bad), true},
			{"modern", port[1], func(*tls.Config) {}, false},
			{"modern, an old client", port[1], old, true},
			{"an old client", port[0], old, false},
		} {
			config := &tls.Config{RootCAs: issuer.Pool(), ServerName: "shop.example.com", MinVersion: tls.VersionTLS12}
			c.edit(config)
			if err := callTLS(t, c.port, config); (err != nil) != c.fails {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		testTerminated(t, port[2], issuer)
		testRedirect(t, port[3])
		p.Accepted()
	})
}

// callTLS makes a request that is to be answered with 200.
func callTLS(t *testing.T, port string, config *tls.Config) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+local(port)+"/", http.NoBody)
	if err != nil {
		return err
	}
	req.Host = "shop.example.com"
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}

// testTerminated: TLS ends at the gateway, and its content goes to a TCP service.
func testTerminated(t *testing.T, port string, issuer *authority) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", local(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := tls.Client(conn, &tls.Config{RootCAs: issuer.Pool(), ServerName: "shop.example.com", MinVersion: tls.VersionTLS12})
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("hello"))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "hello" {
		t.Errorf("echo: %q, %v", got, err)
	}
}

func testRedirect(t *testing.T, port string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+local(port)+"/x?q=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example.com"
	res, err := newTransport(t).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if to := res.Header.Get("Location"); res.StatusCode != http.StatusMovedPermanently || to != "https://shop.example.com/x?q=1" {
		t.Errorf("status %d to %q", res.StatusCode, to)
	}
}
