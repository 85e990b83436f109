// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// maxAlternatives bounds the routes that stand for one. Each header that a call
// must not have with some value doubles them.
const maxAlternatives = 64

// grpcMatches returns the matches by which gRPC clients recognise the calls that
// an Envoy recognises by one; none if there are no such calls.
//
// Calls have no query and no claims, and their method is POST, so what is said of
// these is decided here. The rest is said in the deprecated fields of header
// matches, over which none of the clients refuses a route configuration.
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
		if len(choices) == 1 { // The usual case: nothing is copied.
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

// grpcHeader returns alternatives for the match of a header: all matches of one of
// them hold if it does.
//
// Inverted matches of a missing header are where clients differ: they fail with
// grpc-go and C-core and hold with grpc-js, and treat_missing_header_as_empty does
// not count everywhere. So absence is an alternative of its own, or excluded.
func grpcHeader(h *routev3.HeaderMatcher) [][]*routev3.HeaderMatcher {
	if h.GetName() == methodHeader {
		if headerHolds(h, "POST") {
			return [][]*routev3.HeaderMatcher{nil}
		}
		return nil
	}
	name := strings.ToLower(h.GetName())
	old := oldMatcher(name, h)
	if !h.GetInvertMatch() || h.GetPresentMatch() {
		return [][]*routev3.HeaderMatcher{{old}}
	}
	if !headerHolds(h, "") { // A missing header counts as empty.
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

// oldMatcher says in the deprecated fields what a match says.
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
	holds := true // present
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
