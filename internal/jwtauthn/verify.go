// SPDX-License-Identifier: Apache-2.0

package jwtauthn

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// clockSkew is by how much clocks may differ when a token begins and ends (Envoy 1.40: clock_skew_seconds).
const clockSkew = time.Minute

// Refusal is why a request with a token is refused.
type Refusal struct {
	// Provider is the one whose issuer the token is of; nil: none is.
	Provider *jwt.JwtProvider
	// Status is that of the answer.
	Status int
	Reason string
}

// Verify says what the filter makes of a token with some claims, values as of encoding/json, that was signed by its issuer at
// whatever time: the provider that takes it, and its claims as policies and routes know them, or why it is refused. The
// token is where the providers look for it.
func Verify(config *jwt.JwtAuthentication, claims map[string]any, now time.Time) (taken *jwt.JwtProvider, known map[string]any, refused *Refusal) {
	issuer, _ := claims["iss"].(string)
	refused = &Refusal{Status: http.StatusUnauthorized, Reason: fmt.Sprintf("no rule has the issuer %q of the token", issuer)}
	for i := range len(config.GetProviders()) {
		p := config.GetProviders()[providerName(i)]
		if p.GetIssuer() != issuer || issuer == "" {
			continue
		}
		status, reason := refusedBy(p, claims, now)
		if status == 0 {
			return p, knownClaims(p, claims), nil
		}
		refused = &Refusal{p, status, reason}
	}
	return nil, nil, refused
}

// refusedBy says why a provider refuses a token of its issuer; a status of 0: it takes it.
func refusedBy(p *jwt.JwtProvider, claims map[string]any, now time.Time) (status int, reason string) {
	if end, ok := claims["exp"].(float64); ok && now.Add(-clockSkew).After(timeOf(end)) {
		return http.StatusUnauthorized, "the token has expired"
	}
	if begin, ok := claims["nbf"].(float64); ok && now.Add(clockSkew).Before(timeOf(begin)) {
		return http.StatusUnauthorized, "the token is not valid yet"
	}
	if len(p.GetAudiences()) > 0 && !slices.ContainsFunc(audiencesOf(claims), func(a string) bool {
		return slices.ContainsFunc(p.GetAudiences(), func(wanted string) bool { return plainAudience(wanted) == plainAudience(a) })
	}) {
		return http.StatusForbidden, "the token is for none of the audiences of the rule"
	}
	if p.GetLocalJwks().GetInlineString() == NobodysKeys {
		return http.StatusUnauthorized, "there are no keys to verify tokens of the issuer with"
	}
	return 0, ""
}

// timeOf returns the time of a claim, in seconds since 1970.
func timeOf(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }

// audiencesOf returns the audiences of a token: a text, or a list of them.
func audiencesOf(claims map[string]any) (out []string) {
	if one, ok := claims["aud"].(string); ok {
		return []string{one}
	}
	list, _ := claims["aud"].([]any)
	for _, a := range list {
		if one, ok := a.(string); ok {
			out = append(out, one)
		}
	}
	return out
}

// plainAudience returns what Envoy compares of an audience: it has no scheme of HTTP and no slash at its end.
func plainAudience(a string) string {
	for _, scheme := range []string{"http://", "https://"} {
		if rest, ok := strings.CutPrefix(a, scheme); ok {
			a = rest
			break
		}
	}
	return strings.TrimSuffix(a, "/")
}

// knownClaims returns the claims of a token as the filter passes them on: lists in a text are lists.
func knownClaims(p *jwt.JwtProvider, claims map[string]any) map[string]any {
	out := make(map[string]any, len(claims))
	for name, value := range claims {
		if text, ok := value.(string); ok && slices.Contains(p.GetNormalizePayloadInMetadata().GetSpaceDelimitedClaims(), name) {
			list := []any{}
			for word := range strings.SplitSeq(text, " ") {
				if word != "" {
					list = append(list, word)
				}
			}
			value = list
		}
		out[name] = value
	}
	return out
}

// Bypasses reports whether a request passes the filter unseen, as the browser's question for a request to another
// origin does. Headers are by name in lower case.
func Bypasses(config *jwt.JwtAuthentication, method string, headers map[string]string) bool {
	return config.GetBypassCorsPreflight() && method == http.MethodOptions && headers["origin"] != "" && headers["access-control-request-method"] != ""
}
