// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// successorObjects make all that Envoys were once sent deprecated fields for: clusters
// of both kinds of DNS, routes with and without a timeout, and names that certificates
// must have.
const successorObjects = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: strict, namespace: ingress}
spec:
  hosts: [strict.local.test]
  resolution: DNS
  ports: [{number: 80, name: p, protocol: HTTP}]
  endpoints: [{address: localhost, ports: {p: BACKEND}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: logical, namespace: ingress}
spec:
  hosts: [logical.local.test]
  resolution: DNS_ROUND_ROBIN
  ports: [{number: 80, name: p, protocol: HTTP}]
  endpoints: [{address: localhost, ports: {p: BACKEND}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: logical, namespace: ingress}
spec:
  host: logical.local.test
  subsets:
  - name: secure
    trafficPolicy: {tls: {mode: SIMPLE, sni: x, credentialName: edge, subjectAltNames: [x.example.com, "spiffe://x/y", 10.0.0.1]}}
---` + edgeServers + `
  - {port: {number: PLAIN, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - port: {number: SECURE, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: ["*"]
    tls: {mode: MUTUAL, credentialName: edge, subjectAltNames: [client.example.com]}
---` + shopRoutes + `
  - {match: [{uri: {prefix: /logical}}], route: [{destination: {host: logical.local.test}}]}
  - {match: [{uri: {prefix: /limited}}], timeout: 0.3s, route: [{destination: {host: strict.local.test}}]}
  - {route: [{destination: {host: strict.local.test}}]}
`

// TestSuccessors: the oldest and the newest release get no deprecated or unknown field, and behave
// as the older fields specify.
func TestSuccessors(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		for _, program := range envoyproxy.Programs(t) {
			t.Run(program.String(), func(t *testing.T) { testSuccessors(t, program, delta) })
		}
	})
}

func testSuccessors(t *testing.T, program envoyproxy.Program, delta bool) {
	t.Helper()
	ports := envoyproxy.FreePorts(t, 2)
	p := startPlane(t, planeOptions{})
	authority := newAuthority(t)
	p.vault.set("ingress", "kubernetes://edge", authority.secret("shop.example.com"))
	backend := startSlowBackend(t)
	plain := strconv.Itoa(int(ports[0]))
	p.Apply(successorObjects, "BACKEND", portOf(backend.Listener), "PLAIN", plain, "SECURE", strconv.Itoa(int(ports[1])))
	p.Applied() // so that the Envoy listens when it is ready
	proxy := envoyproxy.Start(t, envoyproxy.Options{
		Program: program, Server: p.Address, Delta: delta,
		Node: envoyproxy.Node{Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}, IP: "127.0.0.1"},
	})
	proxy.AwaitReady()
	p.Applied()
	g := &gateway{plane: p, http: plain}
	for path, want := range map[string]string{
		"/x": "200 ", "/logical": "200 ", "/limited/x": "200 ", "/limited/slow": "504 ", "/slow grpc": "200 4", "/x grpc": "200 ",
	} {
		path, kind, _ := strings.Cut(path, " ")
		if got := g.call(t, path, kind == "grpc"); got != want {
			t.Errorf("%s: status and gRPC status %q, want %q", path, got, want)
		}
	}
	p.Accepted()
	if n := proxy.Refused(); len(n) > 0 {
		t.Errorf("refused: %v", n)
	}
	if n := proxy.Outmoded(); len(n) > 0 {
		t.Errorf("deprecated or unknown fields: %v\n%s", n, proxy.Log())
	}
}

// startSlowBackend starts a server that answers to paths that end in "slow" only when
// the client has gone.
func startSlowBackend(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "slow") {
			<-r.Context().Done()
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(s.Close)
	return s
}

// call returns the status of a request, and that of gRPC. A call of gRPC gives itself
// little time.
func (g *gateway) call(t *testing.T, path string, grpc bool) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+local(g.http)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example.com"
	if grpc {
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Grpc-Timeout", "300m")
	}
	begun := time.Now()
	res, err := newTransport(t).RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	t.Logf("%s: %v", path, time.Since(begun))
	return strconv.Itoa(res.StatusCode) + " " + res.Header.Get("Grpc-Status")
}
