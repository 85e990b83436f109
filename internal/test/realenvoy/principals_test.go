// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// identityCase is a source of a rule, and who of two clients a policy of an action with that rule lets in.
type identityCase struct {
	action, source     string
	letsBad, letsOther bool
}

// identityPolicies has a DENY and an ALLOW policy with a rule for each case, each for a path of its own.
func identityPolicies(cases []identityCase) string {
	rules := map[string]string{"DENY": "", "ALLOW": "\n  - to: [{operation: {paths: [/DENY/*]}}]"}
	for i, c := range cases {
		rules[c.action] += fmt.Sprintf("\n  - {from: [{source: %s}], to: [{operation: {paths: [/%s/%d]}}]}", c.source, c.action, i)
	}
	var out strings.Builder
	for action, list := range rules {
		fmt.Fprintf(&out, `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: %s, namespace: ingress}
spec:
  action: %s
  rules:%s
---`, strings.ToLower(action), action, list)
	}
	return out.String()
}

// testIdentities asks for the path of each case as both clients.
func testIdentities(t *testing.T, cases []identityCase, ask func(client, path string) string) {
	t.Helper()
	for i, c := range cases {
		for client, let := range map[string]bool{"bad": c.letsBad, "other": c.letsOther} {
			want := "403"
			if let {
				want = "200"
			}
			if got := ask(client, fmt.Sprintf("/%s/%d", c.action, i)); got != want {
				t.Errorf("%s %s answers %s with %s, not %s", c.action, c.source, client, got, want)
			}
		}
	}
}

// TestPrincipalsWithSlashes: the identity of a token is the text ISSUER/SUBJECT, wherever its slashes are.
func TestPrincipalsWithSlashes(t *testing.T) {
	const issuer = "https://token.example.com/org"
	cases := []identityCase{
		{"DENY", `{requestPrincipals: ["ISS/repo:org/bad"]}`, false, true},
		{"DENY", `{requestPrincipals: ["ISS/repo:org/b*"]}`, false, true},
		{"DENY", `{requestPrincipals: ["ISS/repo:org/*"]}`, false, false},
		{"DENY", `{requestPrincipals: ["*/repo:org/bad"]}`, false, true},
		{"DENY", `{requestPrincipals: ["*/bad"]}`, false, true},
		{"DENY", `{requestPrincipals: ["*/org/repo:org/bad"]}`, false, true},
		{"DENY", `{requestPrincipals: ["https://token.example.com/*"]}`, false, false},
		{"DENY", `{requestPrincipals: ["*"]}`, false, false},
		{"DENY", `{requestPrincipals: ["ISS/repo:org"]}`, true, true},
		{"DENY", `{requestPrincipals: ["repo:org/bad"]}`, true, true},
		{"DENY", `{notRequestPrincipals: ["ISS/repo:org/other"]}`, false, true},
		{"ALLOW", `{requestPrincipals: ["ISS/repo:org/bad"]}`, true, false},
		{"ALLOW", `{requestPrincipals: ["ISS/repo:org/*"]}`, true, true},
		{"ALLOW", `{notRequestPrincipals: ["ISS/repo:org/b*"]}`, false, true},
		{"ALLOW", `{notRequestPrincipals: ["*/bad"]}`, false, true},
	}
	port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
	key := routesim.NewKey("k")
	p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
	keys := &tokenIssuer{t: t}
	p.Apply(openGate+tokensOf+identityPolicies(cases), "HTTPPORT", port, "KEYS", routesim.KeySet(key), "ISS", issuer)
	proxy := p.readyEdge(envoyproxy.Options{})
	ask := func(client, path string) string {
		claims := keys.claims(map[string]any{"iss": issuer, "sub": "repo:org/" + client})
		return statusWith(t, newTransport(t), "http://"+local(port)+path, key.Sign(claims))
	}
	proxy.Await("the gateway serves", func() bool { return ask("other", "/DENY/0") == "200" })
	testIdentities(t, cases, ask)
	p.Accepted()
}

const (
	// openGate is a gateway that answers everything with 200.
	openGate = edgeGateway + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec: {hosts: ["*"], gateways: [edge], http: [{directResponse: {status: 200}}]}
---`
	tokensOf = `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: ingress}
spec: {jwtRules: [{issuer: "ISS", jwks: 'KEYS'}]}
---`
)

// statusWith is the status of the response to a request with a token, or without one for "".
func statusWith(t *testing.T, transport http.RoundTripper, target, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	_ = answer.Body.Close()
	return strconv.Itoa(answer.StatusCode)
}

// unverifiedGate is a gateway with servers that ask for certificates, and do not verify them.
const unverifiedGate = edgeServers + `
  - {port: {number: REQUIRED, name: required, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*.example.com"], tls: {mode: MUTUAL, credentialName: edge, insecureSkipVerify: true}}
  - {port: {number: ASKED, name: optional, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*.example.com"], tls: {mode: OPTIONAL_MUTUAL, credentialName: edge, insecureSkipVerify: true}}
  - {port: {number: VERIFIED, name: verified, protocol: HTTPS}, bind: 127.0.0.1, hosts: ["*.example.com"], tls: {mode: MUTUAL, credentialName: edge}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec: {hosts: ["*"], gateways: [edge], http: [{directResponse: {status: 200}}]}
---`

// TestUnverifiedIdentities: where certificates of clients are not verified, clients have no
// identity. "bad" has signed a certificate of an admin itself, and "other" that of another
// identity.
func TestUnverifiedIdentities(t *testing.T) {
	var unverified, verified []identityCase
	for _, source := range []string{
		"principals: [cluster.local/ns/ops/sa/admin]", "principals: ['*']", "namespaces: [ops]", "serviceAccounts: [ops/admin]", "trustDomains: [cluster.local]",
	} {
		field, values, _ := strings.Cut(source, ":")
		negative := "not" + strings.ToUpper(field[:1]) + field[1:] + ":" + values
		unverified = append(unverified, identityCase{"ALLOW", "{" + source + "}", false, false}, identityCase{"DENY", "{" + negative + "}", false, false})
		everybody := field == "trustDomains" || strings.Contains(values, "'*'")
		verified = append(verified, identityCase{"ALLOW", "{" + source + "}", true, everybody}, identityCase{"DENY", "{" + negative + "}", true, everybody})
	}
	var ports []string
	for _, n := range envoyproxy.FreePorts(t, 3) {
		ports = append(ports, strconv.Itoa(int(n)))
	}
	p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
	issuer, self := newAuthority(t), newAuthority(t)
	p.vault.set("ingress", "kubernetes://edge", issuer.secret("shop.example.com"))
	p.vault.set("ingress", "kubernetes://edge-cacert", issuer.secret("shop.example.com"))
	p.Apply(unverifiedGate+identityPolicies(verified), "REQUIRED", ports[0], "ASKED", ports[1], "VERIFIED", ports[2])
	proxy := p.readyEdge(envoyproxy.Options{})
	asking := func(by *authority, port string) func(client, path string) string {
		names := map[string]string{"bad": "spiffe://cluster.local/ns/ops/sa/admin", "other": "spiffe://cluster.local/ns/shop/sa/web"}
		return func(client, path string) string {
			transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
				RootCAs: issuer.Pool(), ServerName: "shop.example.com", MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{by.pair(t, names[client])},
			}}
			return statusWith(t, transport, "https://"+local(port)+path, "")
		}
	}
	admin := asking(issuer, ports[2])
	proxy.Await("the gateway serves", func() bool { return admin("bad", "/ALLOW/0") == "200" })
	testIdentities(t, verified, admin)
	for _, port := range ports[:2] {
		testIdentities(t, unverified, asking(self, port))
		testIdentities(t, unverified, asking(issuer, port))
	}
	said := 0
	for _, e := range p.policies.Ineffective() {
		if e.Kind == istio.AuthorizationPolicy && strings.Contains(e.Reason, "nobody verifies") {
			said++
		}
	}
	if said != 2 {
		t.Errorf("of %d policies is said that nobody has an identity: %v", said, p.policies.Ineffective())
	}
	p.Accepted()
}
