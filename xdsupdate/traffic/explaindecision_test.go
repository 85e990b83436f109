// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// decisionScene has a gateway of HTTP, mutual TLS and TCP, and a workload of the namespace shop.
func decisionScene(t *testing.T, objects ...string) *scene {
	t.Helper()
	svc, echo := testService("shop", cart, 80), testService("istio-system", "echo.example.com", 80)
	services := populate(svc, echo)
	for _, name := range sortedKeys(providerServices) {
		services.services = append(services.services, testService("istio-system", registry.Hostname(providerServices[name]), 80))
	}
	services.place(svc, "10.0.0.1 app=cart port=8080", "10.0.0.2 app=secure port=8080 security.istio.io/tlsMode=istio")
	services.place(echo, "10.0.0.9")
	var tried []string
	for i, o := range objects {
		if text, ok := strings.CutSuffix(o, " dry-run"); ok {
			objects[i], tried = text, append(tried, strings.Fields(text)[1])
		}
	}
	all := objectsOf(t, append([]string{
		`Gateway istio-system/edge {"selector": {"app": "edge"}, "servers": [
			{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}, {"hosts": ["*"], "port": {"number": 9000, "name": "tcp", "protocol": "TCP"}},
			{"hosts": ["*.example.com"], "port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "tls": {"mode": "MUTUAL", "credentialName": "edge"}}]}`,
		`VirtualService istio-system/all {"hosts": ["*"], "gateways": ["edge"], "http": [
			{"name": "admin", "match": [{"headers": {"@request.auth.claims.role": {"exact": "admin"}}}], "directResponse": {"status": 201}},
			{"name": "known", "match": [{"withoutHeaders": {"@request.auth.claims.sub": {"exact": "eve"}}, "headers": {"@request.auth.claims[team][name]": {"prefix": "red"}}}], "directResponse": {"status": 202}},
			{"directResponse": {"status": 200}}],
			"tcp": [{"route": [{"destination": {"host": "echo.example.com", "port": {"number": 80}}}]}]}`,
	}, objects...)...)
	for _, c := range all {
		if slices.Contains(tried, c.Namespace+"/"+c.Name) {
			c.Annotations = map[string]string{"istio.io/dry-run": "true"}
		}
	}
	return stage(t, traffic.Options{Mesh: authorizationMesh()}, all, services)
}

const decisionTokens = `RequestAuthentication edge/tokens {"jwtRules": [
	{"issuer": "https://one", "audiences": ["shop"], "jwks": "{\"keys\": [{\"kty\": \"RSA\", \"n\": \"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw\", \"e\": \"AQAB\"}]}"},
	{"issuer": "https://away", "jwksUri": "https://away.example.com/keys"}]}`

// TestExplainDecision: who decides about a call, and why.
func TestExplainDecision(t *testing.T) {
	t.Parallel()
	edge := in("router", "edge", "app=edge")
	gateway := func(path string) traffic.Call { return traffic.Call{Host: "a.example.com", Port: 80, Path: path} }
	token := func(claims map[string]any) traffic.Call {
		c := gateway("/")
		c.Claims = claims
		return c
	}
	inbound := func(principal string) traffic.Call {
		return traffic.Call{Port: 8080, Inbound: true, Path: "/pkg.Cart/Add", Principal: principal}
	}
	server := func(address string) *core.Node { return at(in("grpc", "shop"), address) }
	for name, tc := range map[string]struct {
		objects []string
		client  *core.Node
		call    traffic.Call
		want    string
	}{
		"a rule that denies": {
			[]string{`AuthorizationPolicy edge/deny {"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/x"]}}]}, {"to": [{"operation": {"paths": ["/admin*"]}}]}]}`},
			edge, gateway("/admin/x?y=1"),
			`AuthorizationPolicies are asked first: DENY edge/deny
denied (403): a rule denies it (AuthorizationPolicy edge/deny, spec.rules[1]); identity none, token none
refused (403): a rule denies it
`,
		},
		"no rule that allows": {
			[]string{
				`AuthorizationPolicy edge/a {"rules": [{"to": [{"operation": {"methods": ["POST"]}}]}]}`,
				`AuthorizationPolicy istio-system/b {"rules": [{"from": [{"source": {"ipBlocks": ["10.0.0.0/8"]}}]}]}`,
			},
			edge, gateway("/"),
			`AuthorizationPolicies are asked first: ALLOW istio-system/b, ALLOW edge/a
denied (403): there are ALLOW policies (edge/a, istio-system/b), and none of their rules matches; identity none, token none
  the call does not say source.ip
refused (403): there are ALLOW policies (edge/a, istio-system/b), and none of their rules matches
`,
		},
		"an address": {
			[]string{`AuthorizationPolicy edge/a {"rules": [{"from": [{"source": {"ipBlocks": ["10.0.0.0/8"]}}], "when": [{"key": "remote.ip", "values": ["10.1.0.0/16"]}]}]}`},
			edge,
			traffic.Call{Host: "a.example.com", Port: 80, Source: netip.MustParseAddr("::ffff:10.1.2.3")},
			`AuthorizationPolicies are asked first: ALLOW edge/a
allowed: a rule allows it (AuthorizationPolicy edge/a, spec.rules[0]); identity none, token none
VirtualService istio-system/all, http[2]: answered with 200
`,
		},
		"a provider, audit, and what is tried": {
			[]string{
				`AuthorizationPolicy edge/ask {"action": "CUSTOM", "provider": {"name": "grpc"}, "rules": [{"to": [{"operation": {"paths": ["/"]}}]}]}`,
				`AuthorizationPolicy edge/audit {"action": "AUDIT", "rules": [{}]}`,
				`AuthorizationPolicy edge/try {"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/"]}}]}]} dry-run`,
				`AuthorizationPolicy edge/tried {"rules": [{"to": [{"operation": {"paths": ["/x"]}}]}]} dry-run`,
			},
			edge, gateway("/"),
			`AuthorizationPolicies are asked first: CUSTOM edge/ask, AUDIT edge/audit
allowed: no policy is about it; identity none, token none
  provider grpc decides, asked by AuthorizationPolicy edge/ask, spec.rules[0]
  audited by AuthorizationPolicy edge/audit, spec.rules[0]
  dry run: AuthorizationPolicy edge/try, spec.rules[0] would deny it
  dry run: no ALLOW policy would allow it
VirtualService istio-system/all, http[2]: answered with 200
`,
		},
		"a provider that cannot be asked": {
			[]string{`AuthorizationPolicy edge/ask {"action": "CUSTOM", "provider": {"name": "nobody"}, "rules": [{}]}`},
			edge, gateway("/"),
			`AuthorizationPolicies are asked first: CUSTOM edge/ask
denied (403): a rule matches, and the provider "nobody" cannot be asked (AuthorizationPolicy edge/ask, spec.rules[0]); identity none, token none
  AuthorizationPolicy edge/ask: spec.provider: it denies more than it says: nobody: the mesh configuration has no such extension provider for authorization
refused (403): a rule matches, and the provider "nobody" cannot be asked
`,
		},
		"an action of a newer API": {
			[]string{`AuthorizationPolicy edge/new {"action": 99, "rules": [{"to": [{"operation": {"paths": ["/x"]}}]}]}`},
			edge, gateway("/"),
			`AuthorizationPolicies are asked first: DENY edge/new
denied (403): the policy denies everything: spec.action: has the value 99, which is not known (AuthorizationPolicy edge/new, spec.action); identity none, token none
refused (403): the policy denies everything: spec.action: has the value 99, which is not known
`,
		},
		"a token for the audience": {
			[]string{decisionTokens, `AuthorizationPolicy edge/a {"rules": [{"from": [{"source": {"requestPrincipals": ["https://one/*"]}}], "when": [{"key": "request.auth.claims[scope]", "values": ["write"]}]}]}`},
			edge, token(map[string]any{"iss": "https://one", "sub": "ann", "aud": "https://shop/", "scope": "read write", "role": []any{"user", "admin"}}),
			`AuthorizationPolicies are asked first: ALLOW edge/a
allowed: a rule allows it (AuthorizationPolicy edge/a, spec.rules[0]); identity none, token https://one/ann
VirtualService istio-system/all, http[0] "admin": answered with 201
`,
		},
		"a claim in a claim": {
			[]string{decisionTokens},
			edge, token(map[string]any{"iss": "https://one", "sub": "ann", "aud": "shop", "team": map[string]any{"name": "red one"}}),
			`allowed: no policy is about it; identity none, token https://one/ann
VirtualService istio-system/all, http[1] "known": answered with 202
`,
		},
		"no token": {
			[]string{decisionTokens, `AuthorizationPolicy edge/known {"action": "DENY", "rules": [{"from": [{"source": {"notRequestPrincipals": ["*"]}}]}]}`},
			edge, gateway("/"),
			`AuthorizationPolicies are asked first: DENY edge/known
denied (403): a rule denies it (AuthorizationPolicy edge/known, spec.rules[0]); identity none, token none
refused (403): a rule denies it
`,
		},
		"a token for others": {
			[]string{decisionTokens},
			edge, token(map[string]any{"iss": "https://one", "aud": []any{"bank"}}),
			`denied (403): the token is for none of the audiences of the rule (RequestAuthentication edge/tokens, spec.jwtRules[0]); identity none, token none
refused (403): the token is for none of the audiences of the rule
`,
		},
		"an old token": {
			[]string{decisionTokens},
			edge, token(map[string]any{"iss": "https://one", "aud": "shop", "exp": 1e9}),
			`denied (401): the token has expired (RequestAuthentication edge/tokens, spec.jwtRules[0]); identity none, token none
refused (401): the token has expired
`,
		},
		"a foreign token": {
			[]string{decisionTokens},
			edge, token(map[string]any{"iss": "https://two"}),
			`denied (401): no rule has the issuer "https://two" of the token; identity none, token none
refused (401): no rule has the issuer "https://two" of the token
`,
		},
		"a token without keys": {
			[]string{decisionTokens},
			edge, token(map[string]any{"iss": "https://away"}),
			`denied (401): there are no keys to verify tokens of the issuer with (RequestAuthentication edge/tokens, spec.jwtRules[1]); identity none, token none
refused (401): there are no keys to verify tokens of the issuer with
`,
		},
		"a forged token": {
			[]string{decisionTokens},
			edge,
			traffic.Call{Host: "a.example.com", Port: 80, InvalidToken: true},
			`denied (401): the token is not valid, and there are RequestAuthentications; identity none, token none
refused (401): the token is not valid, and there are RequestAuthentications
`,
		},
		"a certificate that is demanded": {
			nil, edge,
			traffic.Call{Host: "a.example.com", Port: 443},
			`denied (closed): the server of the Gateway takes connections of callers with a certificate alone, and the caller has none; identity none, token none
refused (closed): the server of the Gateway takes connections of callers with a certificate alone, and the caller has none
`,
		},
		"a certificate": {
			[]string{`AuthorizationPolicy edge/a {"rules": [{"from": [{"source": {"principals": ["td1/ns/shop/sa/web"]}}]}]}`},
			edge,
			traffic.Call{Host: "a.example.com", Port: 443, Principal: "td1/ns/shop/sa/web"},
			`AuthorizationPolicies are asked first: ALLOW edge/a
allowed: a rule allows it (AuthorizationPolicy edge/a, spec.rules[0]); identity spiffe://td1/ns/shop/sa/web, token none
VirtualService istio-system/all, http[2]: answered with 200
`,
		},
		"a server name that nobody serves": {
			nil, edge,
			traffic.Call{Host: "a.test", Port: 443, Principal: "td1/ns/shop/sa/web"},
			"no VirtualService decides: no server of a Gateway takes such connections on port 443: they are closed\n",
		},
		"a connection": {
			[]string{`AuthorizationPolicy edge/a {"rules": [{"to": [{"operation": {"ports": ["9000"]}}]}]}`},
			edge,
			traffic.Call{Port: 9000},
			`AuthorizationPolicies are asked first: ALLOW edge/a
allowed: a rule allows it (AuthorizationPolicy edge/a, spec.rules[0]); identity none, token none
the connection is passed on
  to outbound|80||echo.example.com
    priority 0: 10.0.0.9:80, weight 1, locality ""
`,
		},
		"a rule of HTTP for a connection": {
			[]string{`AuthorizationPolicy edge/a {"action": "DENY", "rules": [{"to": [{"operation": {"methods": ["GET"], "ports": ["9000"]}}]}]}`},
			edge,
			traffic.Call{Port: 9000},
			`AuthorizationPolicies are asked first: DENY edge/a
denied (closed): a rule denies it (AuthorizationPolicy edge/a, spec.rules[0]); identity none, token none
refused (closed): a rule denies it
`,
		},
		"a server in plain text": {
			[]string{`AuthorizationPolicy shop/a {"selector": {"matchLabels": {"app": "cart"}}, "rules": [{"to": [{"operation": {"methods": ["POST"], "paths": ["/pkg.Cart/*"]}}]}]}`},
			server("10.0.0.1"), inbound("td1/ns/shop/sa/web"),
			`service shop/cart.shop.svc.cluster.local
allowed: a rule allows it (AuthorizationPolicy shop/a, spec.rules[0]); identity none, token none
served
`,
		},
		"a server that demands mutual TLS": {
			[]string{`PeerAuthentication shop/default {"mtls": {"mode": "STRICT"}}`},
			server("10.0.0.1"), inbound(""),
			`service shop/cart.shop.svc.cluster.local
denied (closed): the server takes mutual TLS alone, and the caller has no certificate (PeerAuthentication shop/default, spec.mtls); identity none, token none
refused (closed): the server takes mutual TLS alone, and the caller has no certificate
`,
		},
		"mutual TLS of a port": {
			[]string{`PeerAuthentication shop/a {"selector": {"matchLabels": {"app": "cart"}}, "mtls": {"mode": "DISABLE"}, "portLevelMtls": {"8080": {"mode": "STRICT"}}}`},
			server("10.0.0.1"), inbound(""),
			`service shop/cart.shop.svc.cluster.local
denied (closed): the server takes mutual TLS alone, and the caller has no certificate (PeerAuthentication shop/a, spec.portLevelMtls); identity none, token none
refused (closed): the server takes mutual TLS alone, and the caller has no certificate
`,
		},
		"mutual TLS of a workload": {
			nil, server("10.0.0.2"), inbound(""),
			`service shop/cart.shop.svc.cluster.local
denied (closed): the workload has the label security.istio.io/tlsMode: istio, so that the server takes mutual TLS alone, and the caller has no certificate; identity none, token none
refused (closed): the workload has the label security.istio.io/tlsMode: istio, so that the server takes mutual TLS alone, and the caller has no certificate
`,
		},
		"a server that can ask nobody": {
			[]string{`AuthorizationPolicy shop/ask {"action": "CUSTOM", "provider": {"name": "grpc"}, "rules": [{"from": [{"source": {"principals": ["*/sa/web"]}}]}]}`},
			server("10.0.0.2"), inbound("td1/ns/shop/sa/web"),
			`service shop/cart.shop.svc.cluster.local
denied (PERMISSION_DENIED): a rule matches, and a gRPC server cannot ask the provider "grpc" (AuthorizationPolicy shop/ask, spec.rules[0]); identity spiffe://td1/ns/shop/sa/web, token none
refused (PERMISSION_DENIED): a rule matches, and a gRPC server cannot ask the provider "grpc"
`,
		},
		"an action of a newer API at a server": {
			[]string{`AuthorizationPolicy shop/new {"action": 99, "rules": [{"to": [{"operation": {"paths": ["/x"]}}]}]}`},
			server("10.0.0.1"), inbound(""),
			`service shop/cart.shop.svc.cluster.local
denied (PERMISSION_DENIED): the policy denies everything: spec.action: has the value 99, which is not known (AuthorizationPolicy shop/new, spec.action); identity none, token none
refused (PERMISSION_DENIED): the policy denies everything: spec.action: has the value 99, which is not known
`,
		},
		"an action of a newer API at a server, without rules": {
			[]string{`AuthorizationPolicy shop/new {"action": 99}`},
			server("10.0.0.1"), inbound(""),
			`service shop/cart.shop.svc.cluster.local
denied (PERMISSION_DENIED): the policy denies everything: spec.action: has the value 99, which is not known (AuthorizationPolicy shop/new, spec.action); identity none, token none
refused (PERMISSION_DENIED): the policy denies everything: spec.action: has the value 99, which is not known
`,
		},
		"a server that is not connected": {
			[]string{`AuthorizationPolicy shop/a {"rules": [{"from": [{"source": {"remoteIpBlocks": ["10.9.0.0/16"]}}]}]}`},
			in("grpc", "shop"),
			traffic.Call{Port: 8080, Inbound: true, Destination: netip.MustParseAddr("10.0.0.1"), Source: netip.MustParseAddr("10.9.1.1")},
			`service shop/cart.shop.svc.cluster.local
allowed: a rule allows it (AuthorizationPolicy shop/a, spec.rules[0]); identity none, token none
served
`,
		},
		"a server without a listener": {
			nil, server("10.0.0.1"),
			traffic.Call{Port: 9, Inbound: true},
			"no VirtualService decides: no service of the namespace \"shop\" sends calls to port 9 at an address of the server, so that it gets no listener\n",
		},
		"a sidecar": {
			nil, in("sidecar", "shop"), inbound(""),
			"no VirtualService decides: what comes to sidecars is not configured here: no policy is enforced\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decisionScene(t, tc.objects...).explain(tc.client, tc.call)
			if got.String() != tc.want {
				t.Errorf("explained:\n%s\nwant:\n%s", got, tc.want)
			}
			for _, secret := range []string{"aHVzaC1odXNo", "symmetric"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("a key of the objects is in %s", got)
				}
			}
		})
	}
}
