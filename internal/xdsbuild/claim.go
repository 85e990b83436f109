// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strings"

	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// A header match with this prefix matches a claim of the request's token, which Envoy's JWT filter
// stores in the dynamic metadata of the request.
const (
	claimPrefix = "@request.auth.claims"
	jwtFilter   = "envoy.filters.http.jwt_authn"
	jwtPayload  = "payload"
)

// claimPath returns the path of the claim in the name of a header match: "@request.auth.claims.a.b"
// and "@request.auth.claims[a][b]" are both a, b. It is nil for the names of headers.
func claimPath(name string) []string {
	if len(name) <= len(claimPrefix) || !strings.EqualFold(name[:len(claimPrefix)], claimPrefix) {
		return nil
	}
	rest := name[len(claimPrefix):]
	if dotted, ok := strings.CutPrefix(rest, "."); ok && dotted != "" {
		return strings.Split(dotted, ".")
	}
	inner, opened := strings.CutPrefix(rest, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed || inner == "" {
		return nil
	}
	return strings.Split(inner, "][")
}

// ClaimMatch returns the metadata match of a route for a header match on a claim of the request's
// token ("@request.auth.claims.NAME"), nil for a match on a header. If without is set, requests
// match that do not have the value.
func ClaimMatch(header string, value *networking.StringMatch, without bool) *matcher.MetadataMatcher {
	if path := claimPath(header); path != nil {
		return claimMatcher(path, value, without)
	}
	return nil
}

// claimMatcher returns the match of a claim: the claim has the value, or is a list with the value.
func claimMatcher(path []string, value *networking.StringMatch, invert bool) *matcher.MetadataMatcher {
	out := &matcher.MetadataMatcher{Filter: jwtFilter, Invert: invert, Value: claimValue(value)}
	for _, key := range append([]string{jwtPayload}, path...) {
		out.Path = append(out.Path, &matcher.MetadataMatcher_PathSegment{
			Segment: &matcher.MetadataMatcher_PathSegment_Key{Key: key},
		})
	}
	return out
}

func claimValue(value *networking.StringMatch) *matcher.ValueMatcher {
	s := stringMatcher(value)
	if s == nil {
		return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_PresentMatch{PresentMatch: true}}
	}
	one := &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_StringMatch{StringMatch: s}}
	list := &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_ListMatch{
		ListMatch: &matcher.ListMatcher{MatchPattern: &matcher.ListMatcher_OneOf{OneOf: one}},
	}}
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_OrMatch{
		OrMatch: &matcher.OrMatcher{ValueMatchers: []*matcher.ValueMatcher{list, one}},
	}}
}
