// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// protected are a gateway and a workload with policies.
const protected = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  selector: {app: edge}
  servers: [{hosts: ["*"], port: {number: 80, name: http, protocol: HTTP}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: infra}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{directResponse: {status: 200}}]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: infra}
spec:
  jwtRules: [{issuer: "https://one", audiences: [shop], jwks: '{"keys": [{"kty": "oct", "kid": "symmetric", "k": "aHVzaC1odXNo"}, {"kty": "RSA", "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw", "e": "AQAB"}]}'}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admins, namespace: infra}
spec:
  rules:
  - to: [{operation: {paths: ["/public*"]}}]
  - from: [{source: {ipBlocks: [10.0.0.0/8]}}]
    when: [{key: "request.auth.claims[role]", values: [admin]}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: tried, namespace: infra, annotations: {istio.io/dry-run: "true"}}
spec: {action: DENY, rules: [{to: [{operation: {methods: [DELETE]}}]}]}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web}
spec: {selector: {matchLabels: {app: cart}}, rules: [{from: [{source: {principals: ["cluster.local/ns/shop/sa/web"]}}]}]}
`

// newProtected starts a control plane with those policies, whose gateway is connected.
func newProtected(t *testing.T) (p *plane, gateway string) {
	t.Helper()
	p = newPlane(t, nil)
	p.apply(mesh)
	p.apply(protected)
	gateway = "router~10.0.0.7~edge.infra~infra.svc"
	p.connectRouter(gateway, "infra", "edge")
	return p, gateway
}

// explained is the JSON of a decision.
type explained struct {
	Outcome  string
	Decision *struct {
		Allowed                         bool
		Answer, Reason, Identity, Token string
		By                              *struct{ Kind, Name, Rule string }
		Unknown                         []string
		DryRun                          []struct{ Allows bool } `json:"dry_run"`
	}
}

func (e explained) String() string {
	if e.Decision == nil {
		return e.Outcome
	}
	by := ""
	if e.Decision.By != nil {
		by = e.Decision.By.Kind + " " + e.Decision.By.Name + " " + e.Decision.By.Rule
	}
	return strings.Join([]string{e.Outcome, e.Decision.Answer, by, e.Decision.Identity, e.Decision.Token, strings.Join(e.Decision.Unknown, " ")}, "; ")
}

// TestExplainDecision: the form has all inputs of policies, and the response names the deciding
// policy.
func TestExplainDecision(t *testing.T) {
	t.Parallel()
	p, gateway := newProtected(t)
	admin := `{"iss": "https://one", "sub": "ann", "aud": "shop", "role": "admin"}`
	for name, tc := range map[string]struct {
		values map[string]string
		want   string
	}{
		"an admin from inside": {
			map[string]string{"proxy": gateway, "host": "a.test", "claims": admin, "source": "10.1.2.3:50000", "method": "DELETE"},
			"answered with 200; ; AuthorizationPolicy infra/admins spec.rules[1]; ; https://one/ann; ",
		},
		"an admin from somewhere": {
			map[string]string{"proxy": gateway, "host": "a.test", "claims": admin},
			"refused (403): there are ALLOW policies (infra/admins), and none of their rules matches; 403; ; ; https://one/ann; source.ip",
		},
		"a forged token": {
			map[string]string{"proxy": gateway, "host": "a.test", "path": "/public", "invalid_token": "1"},
			"refused (401): the token is not valid, and there are RequestAuthentications; 401; ; ; ; ",
		},
		"a token for others": {
			map[string]string{"proxy": gateway, "host": "a.test", "claims": `{"iss": "https://one"}`},
			"refused (403): the token is for none of the audiences of the rule; 403; RequestAuthentication infra/tokens spec.jwtRules[0]; ; ; ",
		},
		"a caller of a server": {
			map[string]string{"inbound": "1", "client": "grpc", "namespace": "shop", "destination": "10.0.0.1", "principal": "cluster.local/ns/shop/sa/web"},
			"served; ; AuthorizationPolicy shop/web spec.rules[0]; spiffe://cluster.local/ns/shop/sa/web; ; ",
		},
		"a caller in plain text": {
			map[string]string{"inbound": "1", "client": "grpc", "namespace": "shop", "destination": "10.0.0.1"},
			"refused (closed): the server takes mutual TLS alone, and the caller has no certificate; closed; PeerAuthentication shop/default spec.mtls; ; ; ",
		},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // they share the plane, which ends with the test
			values := url.Values{}
			for key, value := range tc.values {
				values.Set(key, value)
			}
			target := "/explain?" + values.Encode()
			var got explained
			p.json(target, &got)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("explained (-want +got):\n%s", diff)
			}
			if d := got.Decision; d != nil && d.By != nil && strings.HasPrefix(d.By.Name, "infra/admins") && (len(d.DryRun) != 1 || d.DryRun[0].Allows) {
				t.Errorf("what is tried only: %+v", d.DryRun)
			}
			page := htmlOf(t, p.pages, target)
			if got.Decision.Allowed {
				demand(t, name, page, `<span class="tag good">allowed</span>`)
			} else {
				demand(t, name, page, `<span class="tag bad">denied</span> `+got.Decision.Answer)
			}
			if by := got.Decision.By; by != nil {
				_, object, _ := strings.Cut(by.Name, "/")
				demand(t, name, page, "name="+object, "<code>"+by.Rule+"</code>")
			}
			raw := ask(p.pages, target, "Accept", "application/json").Body.String()
			for _, secret := range []string{"aHVzaC1odXNo", "symmetric"} {
				if strings.Contains(page+raw, secret) {
					t.Errorf("a key of the objects is shown")
				}
			}
		})
	}
	page := htmlOf(t, p.pages, "/explain?"+url.Values{"host": {"a.test"}, "proxy": {gateway}, "claims": {admin}, "inbound": {"1"}, "source": {"10.1.2.3"}}.Encode())
	demand(t, "the form", page, `name="principal"`, `name="source" value="10.1.2.3"`, `name="remote"`, `name="destination"`, `name="server_name"`,
		`name="inbound" value="1" checked`, `name="invalid_token" value="1">`, "&#34;sub&#34;: &#34;ann&#34;", "would deny it")
}

// connectRouter connects a router with a label app, and waits until it listens.
func (p *plane) connectRouter(id, namespace, app string) *xdstest.Client {
	p.t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "LABELS": map[string]any{"app": app}})
	p.must(err)
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{Node: &core.Node{Id: id, Metadata: metadata}, NoHistory: true, Delta: true})
	p.must(c.Subscribe(envoy.ListenerType, "*"))
	p.must(c.Connect(p.t.Context()))
	p.t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(p.t.Context(), testTimeout)
	defer cancel()
	p.must(c.Await(ctx, func(s xdstest.State) bool { return len(s.Resources(envoy.ListenerType)) > 0 }))
	return c
}
