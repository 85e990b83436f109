// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"net/url"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// requestAuthenticationRules are the rules for a RequestAuthentication.
func requestAuthenticationRules(spec *field, _ configstore.Config, policy *security.RequestAuthentication) {
	checkPolicyTarget(spec, policy.Selector, policy.TargetRef, policy.TargetRefs)
	for i, rule := range policy.JwtRules {
		if rule == nil {
			spec.elem("jwtRules", i).refuseNull()
			continue
		}
		checkJWTRule(spec.elem("jwtRules", i), rule)
	}
}

func checkJWTRule(at *field, rule *security.JWTRule) {
	switch {
	case rule.Issuer != "":
	case rule.Jwks == "" && rule.JwksUri == "":
		at.child("issuer").refuse("is required without jwks and jwksUri")
	default:
		at.child("issuer").warn("is empty: tokens of every issuer are accepted that the keys verify")
	}
	checkKeySet(at, rule)
	checkNoEmpty(at, "audiences", rule.Audiences)
	checkNoEmpty(at, "fromParams", rule.FromParams)
	checkNoEmpty(at, "fromCookies", rule.FromCookies)
	checkNoEmpty(at, "spaceDelimitedClaims", rule.SpaceDelimitedClaims)
	for i, header := range rule.FromHeaders {
		if header == nil {
			at.elem("fromHeaders", i).refuseNull()
			continue
		}
		if problem := headerNameProblem(header.Name); problem != "" {
			at.elem("fromHeaders", i).child("name").refuse("%s, is %q", problem, header.Name)
		}
	}
	if rule.OutputPayloadToHeader != "" {
		checkHeaderName(at.child("outputPayloadToHeader"), rule.OutputPayloadToHeader)
	}
	var headers repetitions[string]
	for i, output := range rule.OutputClaimToHeaders {
		place := at.elem("outputClaimToHeaders", i)
		if output == nil {
			place.refuseNull()
			continue
		}
		checkHeaderName(place.child("header"), output.Header)
		checkSet(place.child("claim"), output.Claim, "is required")
		if first, ok := headers.add(output.Header, i); ok && output.Header != "" {
			place.child("header").refuse("repeats outputClaimToHeaders[%d].header: %q", first, output.Header)
		}
	}
	checkDuration(at.child("timeout"), rule.Timeout)
}

// checkKeySet checks where the keys come from that verify tokens.
func checkKeySet(at *field, rule *security.JWTRule) {
	if rule.Jwks != "" {
		if rule.JwksUri != "" {
			at.child("jwksUri").refuse("must not be set beside jwks")
		}
		var set struct {
			Keys []json.RawMessage `json:"keys"`
		}
		if err := json.Unmarshal([]byte(rule.Jwks), &set); err != nil || len(set.Keys) == 0 {
			at.child("jwks").refuse("must be a JSON Web Key Set with at least one key")
		}
	}
	if rule.JwksUri == "" {
		return
	}
	u, err := url.Parse(rule.JwksUri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		at.child("jwksUri").refuse("must be a URL of http or https, is %q", rule.JwksUri)
	}
}

// checkNoEmpty refuses empty strings in a list.
func checkNoEmpty(at *field, name string, values []string) {
	for i, value := range values {
		if value == "" {
			at.elem(name, i).refuse("must not be empty")
		}
	}
}
