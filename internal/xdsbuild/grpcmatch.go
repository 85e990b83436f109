// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// maxAlternatives bounds the number of routes that replace one. Each header that must not have a
// value doubles it.
const maxAlternatives = 64

// grpcMatches returns the matches for gRPC clients that are equivalent to a match for Envoys, none
// if no gRPC call can match.
//
// gRPC calls have no query and no claims, their method is POST, and clients do not see the other pseudo
// headers, so conditions on these are decided here. The other conditions use the deprecated fields of
// header matches, because no gRPC client rejects a route configuration with these.
func grpcMatches(m *routev3.RouteMatch) []*routev3.RouteMatch {
	if len(m.GetQueryParameters()) > 0 {
		return nil
	}
	for _, claim := range m.GetDynamicMetadata() {
		if !claim.GetInvert() {
			return nil
		}
	}
	alternatives := [][]*routev3.HeaderMatcher{nil}
	for _, h := range m.GetHeaders() {
		choices := grpcHeader(h)
		if len(choices) == 1 { // in the usual case nothing is copied
			for i := range alternatives {
				alternatives[i] = append(alternatives[i], choices[0]...)
			}
			continue
		}
		var next [][]*routev3.HeaderMatcher
		for _, more := range choices {
			for _, a := range alternatives {
				next = append(next, slices.Concat(a, more))
			}
		}
		if alternatives = next; len(alternatives) > maxAlternatives {
			return nil
		}
	}
	var out []*routev3.RouteMatch
	for _, headers := range alternatives {
		out = append(out, forElements(&routev3.RouteMatch{
			PathSpecifier: m.GetPathSpecifier(), CaseSensitive: m.GetCaseSensitive(), Headers: headers,
		})...)
	}
	return out
}

// grpcHeader returns alternatives for the match of a header. The match holds if all matches of one
// of the alternatives hold.
//
// Clients differ in inverted matches of a missing header: these fail in grpc-go and C-core and hold
// in grpc-js, and not all of them support treat_missing_header_as_empty. Therefore the absence of
// the header is a separate alternative, or is excluded.
func grpcHeader(h *routev3.HeaderMatcher) [][]*routev3.HeaderMatcher {
	if h.GetName() == methodHeader {
		if headerHolds(h, "POST") {
			return [][]*routev3.HeaderMatcher{nil}
		}
		return nil
	}
	if strings.HasPrefix(h.GetName(), ":") {
		return nil
	}
	name := strings.ToLower(h.GetName())
	old := oldMatcher(name, h)
	if !h.GetInvertMatch() || h.GetPresentMatch() {
		return [][]*routev3.HeaderMatcher{{old}}
	}
	if !headerHolds(h, "") { // a missing header counts as empty
		return [][]*routev3.HeaderMatcher{{present(name, false), old}}
	}
	return [][]*routev3.HeaderMatcher{{present(name, true)}, {old}}
}

func present(name string, invert bool) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name: name, InvertMatch: invert,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true},
	}
}

// oldMatcher converts a header match to the deprecated fields.
func oldMatcher(name string, h *routev3.HeaderMatcher) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: name, InvertMatch: h.GetInvertMatch(), HeaderMatchSpecifier: h.GetHeaderMatchSpecifier()}
	switch p := h.GetStringMatch().GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_ExactMatch{ExactMatch: p.Exact} //nolint:staticcheck // On purpose.
	case *matcher.StringMatcher_Prefix:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PrefixMatch{PrefixMatch: p.Prefix} //nolint:staticcheck // On purpose.
	case *matcher.StringMatcher_SafeRegex:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_SafeRegexMatch{SafeRegexMatch: p.SafeRegex} //nolint:staticcheck // On purpose.
	}
	return out
}

// headerHolds reports whether the match of a header holds for a value.
func headerHolds(h *routev3.HeaderMatcher, value string) bool {
	holds := true // for a present match
	switch p := h.GetStringMatch().GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		holds = p.Exact == value
	case *matcher.StringMatcher_Prefix:
		holds = strings.HasPrefix(value, p.Prefix)
	case *matcher.StringMatcher_SafeRegex:
		re, err := regexp.Compile("^(?:" + p.SafeRegex.GetRegex() + ")$")
		holds = err == nil && re.MatchString(value)
	}
	return holds != h.GetInvertMatch()
}
