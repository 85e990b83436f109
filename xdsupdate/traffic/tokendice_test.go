// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// tokenWorld has keys, key sets, and tokens that were signed with them.
type tokenWorld struct {
	sets    []string            // of the first key, of the second, of both
	signers map[string][]string // by set
	tokens  map[string]*routesim.Token
	texts   []string // of tokens, in order, and some that are none
	// of are the texts of tokens that keys of sets have signed, by issuer.
	of map[string][]string
}

// strangers have keys that are in no set.
const strangers = "k3"

// tokenIssuers are those of rules, of whose names AuthorizationPolicies have some. Rules of the first two are all for the same
// keys and audiences, at various places; those of the others for various ones at the usual places: which of the rules of
// one issuer verifies a token that is at the place of another one is not said (S97).
var tokenIssuers = []string{"iss1", "https://iss/two", "iss2", "a*b"}

func newTokenWorld(tb testing.TB) *tokenWorld {
	tb.Helper()
	w := &tokenWorld{signers: map[string][]string{}, tokens: map[string]*routesim.Token{}, of: map[string][]string{}}
	keys := map[string]*routesim.Key{}
	for _, name := range []string{"k1", "k2", strangers} {
		keys[name] = routesim.NewKey(name)
	}
	for _, names := range [][]string{{"k1"}, {"k2"}, {"k1", "k2"}} {
		var of []*routesim.Key
		for _, name := range names {
			of = append(of, keys[name])
		}
		set := routesim.KeySet(of...)
		w.sets = append(w.sets, set)
		w.signers[set] = names
	}
	for _, issuer := range append([]string{"nobody"}, tokenIssuers...) {
		for _, signer := range sortedKeys(keys) {
			for i, claims := range tokenClaims {
				claims = maps.Clone(claims)
				claims["iss"] = issuer
				outdated := i < 2
				w.add(keys[signer].Sign(claims), &routesim.Token{Signer: signer, Outdated: outdated, Claims: claims})
			}
		}
	}
	signed := w.texts[len(w.texts)-1]
	w.texts = append(w.texts, "", "garbage", "a.b.c", signed[:strings.LastIndexByte(signed, '.')], signed+"A",
		routesim.TokenPart(map[string]any{"alg": "none"})+"."+routesim.TokenPart(map[string]any{"iss": "iss1"})+".")
	return w
}

func (w *tokenWorld) add(text string, t *routesim.Token) {
	w.tokens[text] = t
	w.texts = append(w.texts, text)
	if issuer := t.Claims["iss"].(string); t.Signer != strangers && !t.Outdated {
		w.of[issuer] = append(w.of[issuer], text)
	}
}

// tokenClaims are those of tokens; the first two are outdated.
var tokenClaims = []map[string]any{
	{"sub": "alice", "exp": 1000.0, "aud": "one"},
	{"sub": "alice", "nbf": 1e11, "aud": "one"},
	{"sub": "alice", "aud": "one", "azp": "two", "group": "one", "exp": 1e11},
	{"sub": "bob", "aud": []any{"one", "two"}, "group": []any{"two", 3.0, "one"}, "a": map[string]any{"b": "one"}},
	{"sub": "bob", "aud": []any{}, "scope": "one two", "team": "one two"},
	{"sub": "", "azp": []any{"one"}, "a": []any{"one"}, "team": []any{"two"}},
	{"azp": 5.0, "group": "", "aud": "two"},
	{"sub": "carol", "a": map[string]any{"b": "one"}, "aud": []any{"two", "one"}},
}

// authentication returns a random RequestAuthentication.
func (d policyDice) authentication(w *tokenWorld) *security.RequestAuthentication {
	a := &security.RequestAuthentication{}
	switch d.IntN(10) {
	case 0:
		a.Selector = &apitype.WorkloadSelector{MatchLabels: map[string]string{"app": pick(d.Rand, []string{"edge", "other"})}}
	case 1:
		a.TargetRefs = []*apitype.PolicyTargetReference{{Group: "gateway.networking.k8s.io", Kind: "Gateway", Name: pick(d.Rand, []string{"g1", "g2"})}}
	}
	for range pick(d.Rand, []int{0, 1, 1, 1, 2, 3}) {
		a.JwtRules = append(a.JwtRules, d.signedTokenRule(w))
	}
	return a
}

func (d policyDice) signedTokenRule(w *tokenWorld) *security.JWTRule {
	n := d.IntN(len(tokenIssuers))
	r := &security.JWTRule{Issuer: tokenIssuers[n], ForwardOriginalToken: d.chance(30)}
	if d.chance(20) {
		r.SpaceDelimitedClaims = []string{"team"}
	}
	d.withOutputs(r)
	if n < 2 {
		r.Jwks = w.sets[2*n]
		if n == 1 {
			r.Audiences = []string{"one"}
		}
		d.place(r)
		return r
	}
	r.Audiences = pick(d.Rand, [][]string{nil, nil, {"one"}, {"two", "three"}})
	if r.Jwks = pick(d.Rand, w.sets); d.chance(10) {
		r.Jwks, r.JwksUri = "", "https://nobody.example.com/keys" // nothing is fetched
	}
	return r
}

// place has a rule look for tokens in some places.
func (d policyDice) place(r *security.JWTRule) {
	if d.chance(30) {
		r.FromHeaders = append(r.FromHeaders, &security.JWTHeader{Name: "X-Token"})
	}
	if d.chance(30) {
		r.FromHeaders = append(r.FromHeaders, &security.JWTHeader{Name: "authorization", Prefix: pick(d.Rand, []string{"Bearer ", "Token "})})
	}
	if d.chance(20) {
		r.FromParams = []string{"t"}
	}
	if d.chance(20) {
		r.FromCookies = []string{"c"}
	}
}

// withTokens puts tokens into a request: none, one, or rarely several; often one that some rule is for, where it is for it.
func (d policyDice) withTokens(w *tokenWorld, rules []*security.JWTRule, c *routesim.Call) {
	if len(rules) > 0 && d.chance(60) {
		d.withTokenFor(w, pick(d.Rand, rules), c)
		return
	}
	if d.chance(10) {
		c.Method, c.Headers["origin"], c.Headers["access-control-request-method"] = "OPTIONS", "https://shop", pick(d.Rand, []string{"GET", "GET", ""})
	}
	for range pick(d.Rand, []int{0, 1, 1, 1, 1, 1, 1, 2}) {
		text := pick(d.Rand, w.texts)
		switch d.IntN(8) {
		case 0:
			c.Headers["x-token"] = text
		case 1:
			c.Headers["authorization"] = "Token " + text
		case 2:
			c.Path = fmt.Sprintf("/a?t=%s&x=1", text)
		case 3:
			c.Path = "/a?access_token=" + text
		case 4:
			c.Headers["cookie"] = "a=b; c=" + text
		default:
			c.Headers["authorization"] = "Bearer " + text
		}
	}
}

// withTokenFor puts a token of the issuer of a rule to one of its places.
func (d policyDice) withTokenFor(w *tokenWorld, r *security.JWTRule, c *routesim.Call) {
	text := pick(d.Rand, w.of[r.GetIssuer()])
	switch n := d.IntN(3); {
	case len(r.GetFromHeaders()) > 0:
		h := pick(d.Rand, r.GetFromHeaders())
		c.Headers[strings.ToLower(h.GetName())] = h.GetPrefix() + text
	case len(r.GetFromParams()) > 0:
		c.Path = "/a?t=" + text
	case len(r.GetFromCookies()) > 0:
		c.Headers["cookie"] = "c=" + text
	case n == 0:
		c.Path = "/a?access_token=" + text
	default:
		c.Headers["authorization"] = "Bearer " + text
	}
}
