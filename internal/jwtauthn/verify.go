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

// clockSkew is the tolerance for the begin and the end of a token (Envoy 1.40: clock_skew_seconds).
const clockSkew = time.Minute

// Refusal is the rejection of a request because of its token.
type Refusal struct {
	// Provider is the provider of the token's issuer, or nil if there is none.
	Provider *jwt.JwtProvider
	// Status is the HTTP status of the response.
	Status int
	Reason string
}

// Verify evaluates the filter for a token with the given claims, in the types of encoding/json. It
// assumes that the issuer has signed the token and that the token is where the providers look for
// it. It returns the provider that accepts the token, and the claims as policies and routes see
// them, or the reason for the rejection.
func Verify(config *jwt.JwtAuthentication, claims map[string]any, now time.Time) (taken *jwt.JwtProvider, known map[string]any, refused *Refusal) {
	issuer, _ := claims["iss"].(string)
	if name := malformed(claims); name != "" {
		return nil, nil, &Refusal{Status: http.StatusUnauthorized, Reason: fmt.Sprintf("the claim %q of the token has a value of another type", name)}
	}
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

// malformed returns the name of a registered claim (RFC 7519, section 4.1) whose value has another
// type, or "". An Envoy 1.40 rejects such a token.
func malformed(claims map[string]any) string {
	for _, name := range []string{"iss", "sub", "jti"} {
		if _, ok := claims[name].(string); claims[name] != nil && !ok {
			return name
		}
	}
	for _, name := range []string{"exp", "iat", "nbf"} {
		if n, ok := claims[name].(float64); claims[name] != nil && (!ok || n < 0) {
			return name
		}
	}
	list, isList := claims["aud"].([]any)
	if _, ok := claims["aud"].(string); claims["aud"] != nil && !ok && !isList || len(list) != 0 && len(audiencesOf(claims)) != len(list) {
		return "aud"
	}
	return ""
}

// refusedBy returns the reason why a provider rejects a token of its issuer. The status is 0 if it
// accepts the token.
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

// audiencesOf returns the audiences of a token, which may be a text or a list.
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

// plainAudience returns the part of an audience that Envoy compares, without an HTTP scheme and a
// trailing slash.
func plainAudience(a string) string {
	for _, scheme := range []string{"http://", "https://"} {
		if rest, ok := strings.CutPrefix(a, scheme); ok {
			a = rest
			break
		}
	}
	return strings.TrimSuffix(a, "/")
}

// knownClaims returns the claims as the filter passes them on: space-delimited claims become lists.
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
