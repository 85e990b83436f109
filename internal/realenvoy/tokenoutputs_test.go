// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/envoyproxy"
)

// outputGate is a gateway that tells a workload of tokens.
const outputGate = edgeGateway + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{route: [{destination: {host: told.local.test}}]}]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: ingress}
spec:
  jwtRules:
  - issuer: "ISSUER"
    jwks: 'KEYS'
    outputPayloadToHeader: X-Payload
    outputClaimToHeaders: [{header: X-Sub, claim: sub}, {header: X-Group, claim: group}]
---`

// TestTokenOutputs: a workload is told of a token by the headers of its rule, and of nothing that a client sends in them.
func TestTokenOutputs(t *testing.T) {
	for i, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			told := &backend{name: "told", Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, "payload=%q sub=%q group=%q token=%t", r.Header["X-Payload"], r.Header["X-Sub"], r.Header["X-Group"], r.Header.Get("Authorization") != "")
			}))}
			t.Cleanup(told.Close)
			issuer, port := startTokenIssuer(t), fmt.Sprint(envoyproxy.FreePorts(t, 1)[0])
			p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
			p.apply(outputGate+serviceEntry("told.local.test", "HTTP", told), "HTTPPORT", port, "ISSUER", issuer.url, "KEYS", issuer.set(issuer.published))
			p.flush()
			proxy := envoyproxy.Start(t, envoyproxy.Options{
				Program: program, Server: p.address, Delta: i%2 == 0,
				Node: envoyproxy.Node{Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}},
			})
			proxy.AwaitReady()
			p.applied()
			token := issuer.token(map[string]any{"sub": "ann"})
			payload := strings.Split(token, ".")[1]
			for authorization, want := range map[string]string{
				"":                `payload=[] sub=[] group=[] token=false`,
				"Bearer " + token: fmt.Sprintf(`payload=[%q] sub=["ann"] group=[] token=false`, payload),
			} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+local(port)+"/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header = http.Header{"X-Payload": {"forged"}, "X-Sub": {"forged"}, "X-Group": {"forged"}}
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
				answer, err := newTransport(t).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || string(body) != want {
					t.Errorf("with %.20q: %s (%v), want %s", authorization, body, err, want)
				}
			}
			p.accepted()
		})
	}
}
