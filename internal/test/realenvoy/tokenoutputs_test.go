// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
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
    outputClaimToHeaders:
    - {header: X-Sub, claim: sub}
    - {header: X-Group, claim: group}
    - {header: X-Level, claim: level}
    - {header: X-Share, claim: share}
    - {header: X-Admin, claim: admin}
    - {header: X-Roles, claim: roles}
    - {header: X-Team, claim: team}
    - {header: X-Lead, claim: team.lead}
---`

// claimHeaders are the headers of outputGate with claims.
var claimHeaders = []string{"X-Sub", "X-Group", "X-Level", "X-Share", "X-Admin", "X-Roles", "X-Team", "X-Lead"}

// encoded is how lists and objects are told.
func encoded(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

// TestTokenOutputs: a workload gets the headers of the rule for a token, and nothing that a client
// sends in them.
func TestTokenOutputs(t *testing.T) {
	for i, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			told := &backend{name: "told", Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, "payload=%q token=%t", r.Header["X-Payload"], r.Header.Get("Authorization") != "")
				for _, name := range claimHeaders {
					_, _ = fmt.Fprintf(w, " %s=%q", name, r.Header[name])
				}
			}))}
			t.Cleanup(told.Close)
			issuer, port := startTokenIssuer(t), fmt.Sprint(envoyproxy.FreePorts(t, 1)[0])
			p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
			p.Apply(outputGate+serviceEntry("told.local.test", "HTTP", told), "HTTPPORT", port, "ISSUER", issuer.url, "KEYS", routesim.KeySet(issuer.published...))
			p.readyEdge(envoyproxy.Options{Program: program, Delta: i%2 == 0})
			token := issuer.token(map[string]any{
				"sub": "ann", "level": 7, "share": 0.25, "admin": true, "roles": []string{"user", "admin"}, "team": map[string]any{"lead": "eve"},
			})
			payload := strings.Split(token, ".")[1]
			for authorization, want := range map[string]string{
				"": `payload=[] token=false X-Sub=[] X-Group=[] X-Level=[] X-Share=[] X-Admin=[] X-Roles=[] X-Team=[] X-Lead=[]`,
				"Bearer " + token: fmt.Sprintf(`payload=[%q] token=false X-Sub=["ann"] X-Group=[] X-Level=["7"] X-Share=["0.250000"] X-Admin=["true"] X-Roles=[%q] X-Team=[%q] X-Lead=["eve"]`,
					payload, encoded(`["user","admin"]`), encoded(`{"lead":"eve"}`)),
			} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+local(port)+"/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header = http.Header{"X-Payload": {"forged"}}
				for _, name := range claimHeaders {
					r.Header[name] = []string{"forged"}
				}
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
			p.Accepted()
		})
	}
}
