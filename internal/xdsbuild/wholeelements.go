// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// element returns the path element of a prefix that matches whole elements. It returns false for a
// prefix that matches any path that begins with it: "/", which does both, and prefixes that Envoy
// rejects as elements.
func (s *RouteScope) element(prefix string) (string, bool) {
	element := strings.TrimSuffix(prefix, "/")
	ok := s.WholeElements && len(element) > 1 && !strings.HasSuffix(element, "/") && !strings.ContainsAny(element, "?#")
	return element, ok
}

// replacement returns how to replace a match's prefix by another one: with Envoy's prefix rewrite,
// or with a substitution. Envoy inserts no slash between the new prefix and the rest. Therefore "/"
// instead of "/a" would turn /a/b into //b, and "/new" instead of "/" would turn /b into /newb.
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

// forElements expands a match of whole path elements into matches that gRPC clients support,
// because they reject a route configuration with a path separated prefix.
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
