// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// sharedPort has servers of several Gateways on one port, whose certificates are all good
// for *.example.com, so that clients of HTTP/2 may use one connection for all hosts.
const sharedPort = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: one, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: PORT, name: one, protocol: HTTPS}, bind: 127.0.0.1, hosts: [one.example.com, empty.example.com], tls: {mode: SIMPLE, credentialName: shared}}
  - {port: {number: PORT, name: wild, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*.wild.example.com"], tls: {mode: SIMPLE, credentialName: shared}}
  - {port: {number: PORT, name: secret, protocol: HTTPS}, bind: 127.0.0.1, hosts: [secret.wild.example.com], tls: {mode: MUTUAL, credentialName: shared}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: two, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: PORT, name: two, protocol: HTTPS}, bind: 127.0.0.1, hosts: [two.example.com], tls: {mode: SIMPLE, credentialName: shared}}
  - {port: {number: PORT, name: passed, protocol: TLS}, bind: 127.0.0.1, hosts: [passed.example.com], tls: {mode: PASSTHROUGH}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hosts, namespace: ingress}
spec:
  hosts: [one.example.com, two.example.com, "*.wild.example.com"]
  gateways: [one, two]
  http: [{directResponse: {status: 200}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: secret, namespace: ingress}
spec: {hosts: [secret.wild.example.com], gateways: [one], http: [{directResponse: {status: 200}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: passed, namespace: ingress}
spec:
  hosts: [passed.example.com]
  gateways: [two]
  tls: [{match: [{sniHosts: [passed.example.com]}], route: [{destination: {host: two.example.com, port: {number: 1}}}]}]
`

// TestMisdirected: a request for a host of another server of the port, on an HTTP/2 connection for
// its own server, gets 421; one for an unknown host gets 404. A change at one server affects the
// others, on the same connections.
func TestMisdirected(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				t.Helper()
				testMisdirected(t, program, delta)
			})
		})
	}
}

func testMisdirected(t *testing.T, program envoyproxy.Program, delta bool) {
	t.Helper()
	p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
	issuer := newAuthority(t)
	p.vault.set("ingress", "kubernetes://shared", issuer.secret("*.example.com", "*.wild.example.com"))
	port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
	p.Apply(sharedPort, "PORT", port)
	proxy := p.readyEdge(envoyproxy.Options{Program: program, Delta: delta})
	connections := make(map[string]*coalesced)
	for _, name := range []string{"one.example.com", "two.example.com", "x.wild.example.com"} {
		connections[name] = coalesce(t, issuer, port, name)
	}
	check := func(connection, host string, want int) {
		t.Helper()
		if got := connections[connection].status(host); got != want {
			t.Errorf("on the connection for %s, %s is answered with %d, want %d", connection, host, got, want)
		}
	}
	for host, want := range map[string]int{
		"one.example.com": 200, "ONE.example.com:8443": 200, "one.example.com.": 200,
		"empty.example.com": 404, "nobody.example.com": 404, "wild.example.com": 404, "nobody.test": 404,
		"two.example.com": 421, "Two.example.com:" + port: 421, "two.example.com.": 421,
		"x.wild.example.com": 421, "secret.wild.example.com": 421, "passed.example.com": 421,
	} {
		check("one.example.com", host, want)
	}
	check("two.example.com", "one.example.com", 421)
	check("x.wild.example.com", "y.wild.example.com", 200)
	check("x.wild.example.com", "secret.wild.example.com", 421)
	check("x.wild.example.com", "nobody.example.com", 404)

	p.Apply(strings.NewReplacer("PORT", port, "[two.example.com]", "[two.example.com, nobody.example.com]").Replace(sharedPort))
	p.Applied()
	for name, c := range connections {
		c.await("nobody.example.com", map[string]int{"two.example.com": 404}[name])
	}
	check("one.example.com", "one.example.com", 200)
	for name, c := range connections {
		if c.dials != 1 {
			t.Errorf("%d connections for %s", c.dials, name)
		}
	}
	p.Accepted()
	if refused := proxy.Refused(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// coalesced is a client of HTTP/2 with one connection for all hosts.
type coalesced struct {
	t         *testing.T
	transport *http.Transport
	port      string
	dials     int
}

// coalesce makes the connection for a host.
func coalesce(t *testing.T, issuer *authority, port, name string) *coalesced {
	t.Helper()
	c := &coalesced{t: t, transport: newTransport(t), port: port}
	c.transport.ForceAttemptHTTP2 = true
	c.transport.TLSClientConfig = &tls.Config{RootCAs: issuer.Pool(), ServerName: name, MinVersion: tls.VersionTLS12}
	c.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.dials++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return c
}

// status returns how a request for a host is answered.
func (c *coalesced) status(host string) int {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "https://"+local(c.port)+"/", http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = host
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.ProtoMajor != 2 {
		c.t.Errorf("%s, %v", res.Proto, err)
	}
	return res.StatusCode
}

// await waits until requests for a host are answered with a status, 0: with 421.
func (c *coalesced) await(host string, want int) {
	c.t.Helper()
	if want == 0 {
		want = http.StatusMisdirectedRequest
	}
	for c.status(host) != want {
		if err := c.t.Context().Err(); err != nil {
			c.t.Fatal(err)
		}
	}
}
