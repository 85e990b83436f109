// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	jwtauthn "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// tokenFilter is the name by which what a token claims is found.
const tokenFilter = "envoy.filters.http.jwt_authn"

// verifiesTokens reports whether there is a filter that does.
func (g *Gate) verifiesTokens() bool {
	return slices.ContainsFunc(g.filters, func(f gateFilter) bool {
		_, ok := f.config.(*jwtauthn.JwtAuthentication)
		return ok
	})
}

// token passes the filter that verifies tokens, by the requirement that it has for all requests.
func (v *visit) token(config *jwtauthn.JwtAuthentication) (bool, error) {
	preflight := v.call.Method == http.MethodOptions && v.call.Headers["origin"] != "" && v.call.Headers["access-control-request-method"] != ""
	if preflight && config.GetBypassCorsPreflight() {
		return true, nil
	}
	if len(config.GetRules()) != 1 || config.GetRules()[0].GetMatch().GetPrefix() != "/" {
		return false, fmt.Errorf("rules for tokens of some requests are not known here: %v", config.GetRules())
	}
	return v.required(config, config.GetRules()[0].GetRequires())
}

func (v *visit) required(config *jwtauthn.JwtAuthentication, r *jwtauthn.JwtRequirement) (bool, error) {
	switch m := r.GetRequiresType().(type) {
	case *jwtauthn.JwtRequirement_ProviderName:
		return v.taken(config.GetProviders()[m.ProviderName])
	case *jwtauthn.JwtRequirement_RequiresAny:
		return anyOf(m.RequiresAny.GetRequirements(), func(one *jwtauthn.JwtRequirement) (bool, error) { return v.required(config, one) })
	case *jwtauthn.JwtRequirement_RequiresAll:
		return allOf(m.RequiresAll.GetRequirements(), func(one *jwtauthn.JwtRequirement) (bool, error) { return v.required(config, one) })
	case *jwtauthn.JwtRequirement_AllowMissing:
		if v.call.Claims == nil {
			return true, nil
		}
		for _, p := range config.GetProviders() {
			if taken, err := v.taken(p); taken || err != nil {
				return taken, err
			}
		}
		return false, nil
	default:
		return false, fmt.Errorf("requirement %T is not known here", m)
	}
}

// taken reports whether a provider takes the token of the call, and has others know what is in it.
func (v *visit) taken(p *jwtauthn.JwtProvider) (bool, error) {
	claims := v.call.Claims
	if p == nil || p.GetPayloadInMetadata() != "payload" {
		return false, fmt.Errorf("provider %v is not known here", p)
	}
	// A provider without an issuer takes those of all, if it has their keys.
	if claims == nil || p.GetIssuer() != "" && claims["iss"] != p.GetIssuer() || !isForAudience(p.GetAudiences(), claims["aud"]) {
		return false, nil
	}
	if v.gate.Verifies == nil || !v.gate.Verifies(p.GetLocalJwks().GetInlineString(), v.call) {
		return false, nil
	}
	payload := map[string]any{}
	for name, value := range claims {
		payload[name] = value
		if text, ok := value.(string); ok && slices.Contains(p.GetNormalizePayloadInMetadata().GetSpaceDelimitedClaims(), name) {
			words := []any{}
			for word := range strings.FieldsSeq(text) {
				words = append(words, word)
			}
			payload[name] = words
		}
	}
	v.found[tokenFilter] = map[string]any{"payload": payload}
	return true, nil
}

// isForAudience reports whether a token is for one of some audiences, without schemes and slashes at the end; none are all.
func isForAudience(audiences []string, claim any) bool {
	plain := func(a string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://"), "/")
	}
	list, _ := claim.([]any)
	if one, ok := claim.(string); ok {
		list = []any{one}
	}
	return len(audiences) == 0 || slices.ContainsFunc(list, func(a any) bool {
		text, ok := a.(string)
		return ok && slices.ContainsFunc(audiences, func(wanted string) bool { return plain(wanted) == plain(text) })
	})
}
