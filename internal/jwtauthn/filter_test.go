// SPDX-License-Identifier: Apache-2.0

package jwtauthn

import (
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"testing"

	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	security "istio.io/api/security/v1beta1"
)

// TestNobodysKeys: the key is derived from the text, so that it cannot have been chosen.
func TestNobodysKeys(t *testing.T) {
	c := elliptic.P256().Params()
	hash := sha256.Sum256([]byte(nobodysText))
	x := new(big.Int).SetBytes(hash[:])
	for {
		square := new(big.Int).Exp(x, big.NewInt(3), c.P)
		square.Sub(square, new(big.Int).Mul(big.NewInt(3), x)).Add(square, c.B).Mod(square, c.P)
		if y := new(big.Int).ModSqrt(square, c.P); y != nil {
			if y.Bit(0) == 1 {
				y.Sub(c.P, y)
			}
			text := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32))) }
			if text(x) != nobodysX || text(y) != nobodysY {
				t.Errorf("the text leads to %s, %s", text(x), text(y))
			}
			return
		}
		x.Add(x, big.NewInt(1))
	}
}

func ruleOf(t *testing.T, text, keys string) Rule {
	t.Helper()
	spec := &security.JWTRule{}
	if err := protojson.Unmarshal([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return Rule{Spec: spec, Keys: keys}
}

// TestConfig: rules are sorted by issuer, and a request passes with one valid token, or if each
// token is valid or missing.
func TestConfig(t *testing.T) {
	if got := Config(nil); got != nil {
		t.Errorf("for no rules: %v", got)
	}
	full := `{"issuer": "b", "audiences": ["x"], "fromHeaders": [{"name": "x-jwt", "prefix": "P "}], "fromParams": ["p"], "fromCookies": ["c"],
		"forwardOriginalToken": true, "outputPayloadToHeader": "x-payload", "outputClaimToHeaders": [{"header": "x-sub", "claim": "sub"}],
		"spaceDelimitedClaims": ["roles", "scope"], "timeout": "2s"}`
	got := Config([]Rule{ruleOf(t, full, "keys of b"), ruleOf(t, `{"issuer": "a"}`, "")})
	want := &jwt.JwtAuthentication{}
	if err := protojson.Unmarshal([]byte(`{
		"bypassCorsPreflight": true,
		"providers": {
			"origins-0": {"issuer": "a", "localJwks": {"inlineString": "NOBODY"}, "payloadInMetadata": "payload", "clearRouteCache": true,
				"normalizePayloadInMetadata": {"spaceDelimitedClaims": ["permission", "scope"]}},
			"origins-1": {"issuer": "b", "audiences": ["x"], "localJwks": {"inlineString": "keys of b"}, "payloadInMetadata": "payload", "clearRouteCache": true,
				"fromHeaders": [{"name": "x-jwt", "valuePrefix": "P "}], "fromParams": ["p"], "fromCookies": ["c"], "forward": true,
				"forwardPayloadHeader": "x-payload", "claimToHeaders": [{"headerName": "x-sub", "claimName": "sub"}],
				"normalizePayloadInMetadata": {"spaceDelimitedClaims": ["permission", "roles", "scope"]}}
		},
		"rules": [{"match": {"prefix": "/"}, "requires": {"requiresAny": {"requirements": [
			{"providerName": "origins-0"}, {"providerName": "origins-1"},
			{"requiresAll": {"requirements": [
				{"requiresAny": {"requirements": [{"providerName": "origins-0"}, {"allowMissing": {}}]}},
				{"requiresAny": {"requirements": [{"providerName": "origins-1"}, {"allowMissing": {}}]}}]}}]}}}]
	}`), want); err != nil {
		t.Fatal(err)
	}
	want.Providers["origins-0"].GetLocalJwks().Specifier = Provider(Rule{Keys: NobodysKeys}).GetLocalJwks().Specifier
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	one := Config([]Rule{ruleOf(t, `{"issuer": "a"}`, "")}).GetRules()[0].GetRequires().GetRequiresAny().GetRequirements()
	if len(one) != 2 || one[0].GetProviderName() != "origins-0" || one[1].GetAllowMissing() == nil {
		t.Errorf("of one rule: %v", one)
	}
}
