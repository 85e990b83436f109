// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// tokenGate is a gateway that routes by claims, and takes tokens of four issuers: of published keys, of keys that its
// configuration names, of keys that it is given, and of one that is away.
const tokenGate = edgeGateway + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  http:
  - match: [{headers: {"@request.auth.claims.role": {exact: admin}}}]
    directResponse: {status: 200, body: {string: admin}}
  - match: [{headers: {"@request.auth.claims[team][name]": {prefix: red}}}]
    directResponse: {status: 200, body: {string: team}}
  - match: [{withoutHeaders: {"@request.auth.claims.sub": {}}}]
    directResponse: {status: 200, body: {string: nobody}}
  - directResponse: {status: 200, body: {string: somebody}}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: ingress}
spec:
  jwtRules:
  - {issuer: "PUBLISHED", jwksUri: "PUBLISHED/keys", audiences: [shop], forwardOriginalToken: true}
  - {issuer: "DISCOVERED"}
  - {issuer: "INLINE", jwks: 'INLINEKEYS'}
  - {issuer: "AWAY", jwksUri: "AWAY/keys"}
`

// tokenCourt is a gateway of tokenGate.
type tokenCourt struct {
	*plane
	proxy                               *envoyproxy.Proxy
	port                                string
	published, discovered, inline, away *tokenIssuer
}

func startTokenCourt(t *testing.T, o envoyproxy.Options) *tokenCourt {
	t.Helper()
	c := &tokenCourt{
		plane:     startPlane(t, planeOptions{mesh: withoutMeshTLS(), keyRefresh: 20 * time.Millisecond}),
		port:      strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0])),
		published: startTokenIssuer(t), discovered: startTokenIssuer(t), inline: startTokenIssuer(t), away: startTokenIssuer(t),
	}
	c.away.leave(true)
	c.Apply(tokenGate, "HTTPPORT", c.port, "PUBLISHED", c.published.url, "DISCOVERED", c.discovered.url,
		"INLINEKEYS", routesim.KeySet(c.inline.published...), "INLINE", c.inline.url, "AWAY", c.away.url)
	c.proxy = c.readyEdge(o)
	return c
}

// answer is the status and the body of the response to a request with an Authorization header, or
// without one for "".
func (c *tokenCourt) answer(authorization string) string {
	c.TB.Helper()
	r, err := http.NewRequestWithContext(c.TB.Context(), http.MethodGet, "http://"+local(c.port)+"/", http.NoBody)
	if err != nil {
		c.TB.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := newTransport(c.TB).RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	if answer.StatusCode != http.StatusOK {
		return strconv.Itoa(answer.StatusCode)
	}
	return string(body)
}

// becomes waits until a request with a token is answered as it should be.
func (c *tokenCourt) becomes(what, token, want string) {
	c.TB.Helper()
	c.proxy.Await(fmt.Sprintf("%s is answered with %s", what, want), func() bool { return c.answer("Bearer "+token) == want })
}

// reported returns the report for the rule with an index, or "".
func (c *tokenCourt) reported(rule int) string {
	for _, e := range c.policies.Ineffective() {
		if e.Kind == istio.RequestAuthentication && e.Field == fmt.Sprintf("spec.jwtRules[%d]", rule) {
			return e.Reason
		}
	}
	return ""
}

// TestTokens: gateways verify tokens as RequestAuthentications specify, by the currently published
// keys of their issuers, and route by the claims of valid ones.
func TestTokens(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				t.Helper()
				c := startTokenCourt(t, envoyproxy.Options{Program: program, Delta: delta})
				c.testTokens()
				c.testClaims()
				c.testKeyRotation()
				c.testIssuerAway()
				c.testLateKeys()
				c.Accepted()
			})
		})
	}
}

// forShop are the claims of tokens of the issuer that is trusted with an audience.
var forShop = map[string]any{"aud": "shop"}

// testTokens: who is let in with what.
func (c *tokenCourt) testTokens() {
	c.TB.Helper()
	// Keys that are fetched come after the gateway has started.
	c.becomes("a token of published keys", c.published.token(forShop), "somebody")
	c.becomes("a token of discovered keys", c.discovered.token(nil), "somebody")
	foreign := routesim.NewKey(c.inline.key.ID)
	hour := time.Hour
	for name, tc := range map[string]struct{ authorization, want string }{
		"no token":                   {"", "nobody"},
		"another scheme":             {"Basic YTpi", "nobody"},
		"keys that it is given":      {"Bearer " + c.inline.token(nil), "somebody"},
		"one audience of two":        {"Bearer " + c.published.token(map[string]any{"aud": []string{"other", "shop"}}), "somebody"},
		"another audience":           {"Bearer " + c.published.token(map[string]any{"aud": "other"}), "403"},
		"no audience":                {"Bearer " + c.published.token(nil), "403"},
		"expired":                    {"Bearer " + c.inline.token(map[string]any{"exp": time.Now().Add(-hour).Unix()}), "401"},
		"not valid yet":              {"Bearer " + c.inline.token(map[string]any{"nbf": time.Now().Add(hour).Unix()}), "401"},
		"a foreign key":              {"Bearer " + foreign.Sign(c.inline.claims(nil)), "401"},
		"the key of another issuer":  {"Bearer " + c.discovered.key.Sign(c.inline.claims(nil)), "401"},
		"a foreign issuer":           {"Bearer " + c.inline.token(map[string]any{"iss": "https://nobody"}), "401"},
		"no issuer":                  {"Bearer " + c.inline.token(map[string]any{"iss": ""}), "401"},
		"altered":                    {"Bearer " + c.inline.altered(), "401"},
		"unsigned":                   {"Bearer " + c.inline.unsigned(), "401"},
		"without its signature":      {"Bearer " + strings.Join(strings.Split(c.inline.token(nil), ".")[:2], "."), "401"},
		"garbage":                    {"Bearer !.x.y", "401"},
		"an issuer that is away":     {"Bearer " + c.away.token(nil), "401"},
		"nobody's key for one away":  {"Bearer " + foreign.Sign(c.away.claims(nil)), "401"},
		"a word, and no more tokens": {"Bearer x", "401"},
	} {
		if got := c.answer(tc.authorization); got != tc.want { // a worker may be behind
			c.proxy.Await(fmt.Sprintf("%s is answered with %s, not %s", name, tc.want, got), func() bool { return c.answer(tc.authorization) == tc.want })
		}
	}
	if got := c.reported(3); !strings.Contains(got, "are denied") || !strings.Contains(got, c.away.url) {
		c.TB.Errorf("of the issuer that is away is said %q", got)
	}
	for rule := range 3 {
		if got := c.reported(rule); got != "" {
			c.TB.Errorf("of rule %d is said %q", rule, got)
		}
	}
}

// testClaims: routes and policies by claims.
func (c *tokenCourt) testClaims() {
	c.TB.Helper()
	c.becomes("an admin", c.inline.token(map[string]any{"role": "admin"}), "admin")
	c.becomes("one role of two", c.inline.token(map[string]any{"role": []string{"user", "admin"}}), "admin")
	c.becomes("a nested claim", c.discovered.token(map[string]any{"team": map[string]any{"name": "red one"}}), "team")
	c.becomes("a similar claim", c.discovered.token(map[string]any{"team": "red"}), "somebody")
	c.Apply(`
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admins, namespace: ingress}
spec: {rules: [{from: [{source: {requestPrincipals: ["ISSUER/*"]}}], when: [{key: "request.auth.claims[role]", values: [admin]}]}]}
`, "ISSUER", c.inline.url)
	c.Applied()
	c.proxy.Await("nobody is let in without a token", func() bool { return c.answer("") == "403" })
	c.becomes("an admin of the policy", c.inline.token(map[string]any{"role": "admin"}), "admin")
	c.becomes("a user", c.inline.token(map[string]any{"role": "user"}), "403")
	c.becomes("an admin of another issuer", c.discovered.token(map[string]any{"role": "admin"}), "403")
	c.Delete(istio.AuthorizationPolicy, "ingress", "admins")
	c.Applied()
	c.proxy.Await("the policy has gone", func() bool { return c.answer("") == "nobody" })
}

// testKeyRotation: old and new keys are good as long as both are published, and then the new ones alone.
func (c *tokenCourt) testKeyRotation() {
	c.TB.Helper()
	for i, issuer := range []*tokenIssuer{c.published, c.discovered} {
		older, newer := issuer.key, routesim.NewKey(fmt.Sprint("newer", i))
		claims := issuer.claims(forShop)
		before, after := older.Sign(claims), newer.Sign(claims)
		c.becomes("a key that is not published yet", after, "401")
		issuer.publish(older, newer)
		c.becomes("a new key", after, "somebody")
		c.becomes("an old key meanwhile", before, "somebody")
		issuer.publish(newer)
		c.becomes("an old key that is published no more", before, "401")
		c.becomes("a new key alone", after, "somebody")
		issuer.key = newer
	}
}

// testIssuerAway: the last keys are valid while their issuer is down; tokens signed with newer ones
// are valid when it is back.
func (c *tokenCourt) testIssuerAway() {
	c.TB.Helper()
	i := c.published
	i.leave(true)
	newer := routesim.NewKey("away")
	i.publish(newer)
	c.proxy.Await("the issuer was asked", func() bool { return i.missed() > 1 })
	c.proxy.Await("it is reported", func() bool { return strings.Contains(c.reported(0), "keys that were fetched before") })
	// A listener that is made again has the same keys.
	c.Apply(`
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: nothing, namespace: ingress}
spec: {action: DENY, rules: [{from: [{source: {notRequestPrincipals: ["*"]}}]}]}
`)
	c.Applied()
	c.proxy.Await("the policy is in force", func() bool { return c.answer("") == "403" })
	c.becomes("the last keys", i.token(forShop), "somebody")
	c.becomes("keys that nobody has seen", newer.Sign(i.claims(forShop)), "401")
	i.leave(false)
	c.becomes("keys of an issuer that is back", newer.Sign(i.claims(forShop)), "somebody")
	c.becomes("the keys before", i.token(forShop), "401")
	c.proxy.Await("nothing is reported", func() bool { return c.reported(0) == "" })
	c.Delete(istio.AuthorizationPolicy, "ingress", "nothing")
	c.Applied()
	c.proxy.Await("the policy has gone", func() bool { return c.answer("") == "nobody" })
}

// testLateKeys: an issuer that was away from the beginning is trusted when it is there.
func (c *tokenCourt) testLateKeys() {
	c.TB.Helper()
	c.becomes("an issuer that is away", c.away.token(nil), "401")
	c.away.leave(false)
	c.becomes("an issuer that has come", c.away.token(nil), "somebody")
	c.proxy.Await("nothing is reported", func() bool { return c.reported(3) == "" })
}
