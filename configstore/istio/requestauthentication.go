// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"net/url"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// requestAuthenticationRules are the rules for a RequestAuthentication.
func requestAuthenticationRules(spec *field, _ configstore.Config, policy *security.RequestAuthentication) {
	checkPolicyTarget(spec, policy.Selector, policy.TargetRef, policy.TargetRefs)
	for at, rule := range elements(spec, "jwtRules", policy.JwtRules) {
		checkJWTRule(at, rule)
	}
}

func checkJWTRule(at *field, rule *security.JWTRule) {
	if rule.Issuer == "" { // Envoy would take tokens of every issuer that the keys verify.
		at.child("issuer").refuse("is required")
	}
	checkKeySet(at, rule)
	checkNoEmpty(at, "audiences", rule.Audiences)
	checkNoEmpty(at, "fromParams", rule.FromParams)
	checkNoEmpty(at, "fromCookies", rule.FromCookies)
	for i, claim := range rule.SpaceDelimitedClaims {
		if claim == "" { // Istio takes it.
			at.elem("spaceDelimitedClaims", i).warn("is empty, and no token has a claim of this name")
		}
	}
	for place, header := range elements(at, "fromHeaders", rule.FromHeaders) {
		name := place.child("name")
		checkSet(name, header.Name, "must not be empty")
		if header.Name != "" && !isHeaderToken(header.Name) {
			name.warn("is %q, which is not a header name", header.Name)
		}
	}
	if rule.OutputPayloadToHeader != "" {
		checkHeaderName(at.child("outputPayloadToHeader"), rule.OutputPayloadToHeader)
	}
	var headers repetitions[string]
	for place, output := range elements(at, "outputClaimToHeaders", rule.OutputClaimToHeaders) {
		checkHeaderName(place.child("header"), output.Header)
		checkSet(place.child("claim"), output.Claim, "is required")
		headers.refuse(place.child("header"), output.Header, place.index, "repeats outputClaimToHeaders[%d].header: %q")
	}
	checkDuration(at.child("timeout"), rule.Timeout)
}

// checkKeySet checks where the keys come from that verify tokens.
func checkKeySet(at *field, rule *security.JWTRule) {
	if rule.Jwks != "" {
		if rule.JwksUri != "" {
			at.child("jwksUri").refuse("must not be set together with jwks")
		}
		checkInlineKeys(at.child("jwks"), rule.Jwks)
	}
	if rule.JwksUri == "" {
		return
	}
	u, err := url.Parse(rule.JwksUri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		at.child("jwksUri").refuse("must be a URL of http or https, is %q", rule.JwksUri)
	}
}

// checkInlineKeys checks a JSON Web Key Set. Tokens are made with private and with
// symmetric keys, which do not belong into an object that many can read.
func checkInlineKeys(at *field, jwks string) {
	var set struct{ Keys []webKey }
	if err := json.Unmarshal([]byte(jwks), &set); err != nil || len(set.Keys) == 0 {
		at.refuse("must be a JSON Web Key Set with at least one key")
		return
	}
	for i, key := range set.Keys {
		switch {
		case !key.complete():
			at.refuse("must have keys of type RSA, EC, OKP or oct with their parameters, key %d is not", i)
		case key.Private != "" || key.Type == "oct":
			at.warn("key %d holds private key material, with which every reader of this object can make tokens", i)
		}
	}
}

// webKey is a JSON Web Key, as RFC 7518 and RFC 8037 describe them.
type webKey struct {
	Type    string `json:"kty"`
	Curve   string `json:"crv"`
	N, E    string // of RSA
	X, Y    string // of curves
	K       string // symmetric
	Private string `json:"d"`
}

// complete reports whether the key has the parameters of its type.
func (k webKey) complete() bool {
	switch k.Type {
	case "RSA":
		return isBase64(k.N) && isBase64(k.E)
	case "EC":
		return k.Curve != "" && isBase64(k.X) && isBase64(k.Y)
	case "OKP":
		return k.Curve != "" && isBase64(k.X)
	case "oct":
		return isBase64(k.K)
	default:
		return false
	}
}

// isBase64 takes both alphabets, with and without padding.
func isBase64(s string) bool {
	digits := strings.TrimRight(s, "=")
	for i := range len(digits) {
		if c := digits[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '+' && c != '/' {
			return false
		}
	}
	return len(digits) > 0 && len(digits)%4 != 1
}

// checkNoEmpty refuses empty strings in a list.
func checkNoEmpty(at *field, name string, values []string) {
	for i, value := range values {
		if value == "" {
			at.elem(name, i).refuse("must not be empty")
		}
	}
}
