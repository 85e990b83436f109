// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// element returns what a prefix is that matches whole elements of paths; false for one
// that matches any path that begins with it: "/", which does both, and what Envoy would
// refuse to take for elements.
func (s *RouteScope) element(prefix string) (string, bool) {
	element := strings.TrimSuffix(prefix, "/")
	ok := s.WholeElements && len(element) > 1 && !strings.HasSuffix(element, "/") && !strings.ContainsAny(element, "?#")
	return element, ok
}

// replacement says how to replace the prefix that a match is of by another one: as Envoy
// does it, or by a substitution. Envoy puts nothing between the two, so that "/" in the
// place of "/a" would make //b of /a/b, and "/new" in the place of "/" would make /newb of /b.
func (s *RouteScope) replacement(m *routev3.RouteMatch, by string) (prefix string, substitution *matcher.RegexMatchAndSubstitute) {
	bare := strings.TrimSuffix(by, "/")
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_PathSeparatedPrefix:
		if bare != "" || by == "" {
			return bare, nil
		}
		flags := ""
		if m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue() {
			flags = "(?i)"
		}
		return "", &matcher.RegexMatchAndSubstitute{
			Pattern:      &matcher.RegexMatcher{Regex: flags + "^" + regexp.QuoteMeta(p.PathSeparatedPrefix) + "/?"},
			Substitution: "/",
		}
	case *routev3.RouteMatch_Prefix:
		if s.WholeElements && p.Prefix == "/" && by != "" {
			return bare + "/", nil
		}
	}
	return by, nil
}

// forElements returns matches of a path's whole elements that gRPC clients know, which
// refuse a route configuration with the one that says so.
func forElements(m *routev3.RouteMatch) []*routev3.RouteMatch {
	element := m.GetPathSeparatedPrefix()
	if element == "" {
		return []*routev3.RouteMatch{m}
	}
	exact := &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Path{Path: element}, CaseSensitive: m.GetCaseSensitive(), Headers: m.GetHeaders(),
	}
	below := &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: element + "/"}, CaseSensitive: m.GetCaseSensitive(), Headers: m.GetHeaders(),
	}
	return []*routev3.RouteMatch{exact, below}
}
