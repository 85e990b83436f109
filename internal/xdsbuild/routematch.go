// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// The pseudo headers that correspond to fields of a match.
const (
	methodHeader    = ":method"
	authorityHeader = ":authority"
	schemeHeader    = ":scheme"
)

// everyPath returns a match that every request passes.
func everyPath() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// matchesAll reports whether every request matches. It also recognizes the regular expression that
// users write for this.
func matchesAll(m *routev3.RouteMatch) bool {
	if len(m.GetHeaders()) > 0 || len(m.GetQueryParameters()) > 0 || len(m.GetDynamicMetadata()) > 0 {
		return false
	}
	return m.GetPrefix() == "/" || m.GetSafeRegex().GetRegex() == ".*"
}

// routeMatch returns the match for requests, nil if no request can match.
func (s *RouteScope) routeMatch(m *networking.HTTPMatchRequest) *routev3.RouteMatch {
	out := everyPath()
	if m == nil {
		return out
	}
	out.CaseSensitive = wrapperspb.Bool(!m.GetIgnoreUriCase())
	switch uri := m.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: uri.Exact}
	case *networking.StringMatch_Prefix:
		if element, ok := s.element(uri.Prefix); ok {
			out.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: element}
		} else {
			out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: uri.Prefix}
		}
	case *networking.StringMatch_Regex:
		if !isRegex(uri.Regex) {
			return nil // clients would reject the whole configuration
		}
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: uri.Regex}}
	}
	if !addHeaderMatches(out, m) || !addQueryMatches(out, m.GetQueryParams()) {
		return nil
	}
	return out
}

// addHeaderMatches adds the matches of headers, and of claims, which are written as headers. It
// returns false if nothing can match.
func addHeaderMatches(out *routev3.RouteMatch, m *networking.HTTPMatchRequest) bool {
	ok := true
	add := func(name string, value *networking.StringMatch, invert bool) {
		if claim := ClaimMatch(name, value, invert); claim != nil {
			out.DynamicMetadata = append(out.DynamicMetadata, claim)
			return
		}
		h := headerMatcher(name, value, invert)
		if h == nil {
			ok = false
			return
		}
		out.Headers = append(out.Headers, h)
	}
	if m.GetMethod() != nil {
		add(methodHeader, m.GetMethod(), false)
	}
	if m.GetAuthority() != nil {
		add(authorityHeader, m.GetAuthority(), false)
	}
	if m.GetScheme() != nil {
		add(schemeHeader, m.GetScheme(), false)
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		add(name, m.GetHeaders()[name], false)
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		add(name, m.GetWithoutHeaders()[name], true)
	}
	return ok
}

// headerMatcher returns the match of a header. If invert is set, it fails if the header matches. It
// is nil for a header or a value that no client accepts.
func headerMatcher(name string, value *networking.StringMatch, invert bool) *routev3.HeaderMatcher {
	if name == "" {
		return nil
	}
	out := &routev3.HeaderMatcher{Name: name, InvertMatch: invert}
	if anyValue(value) {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
		return out
	}
	s := stringMatcher(value)
	if s == nil {
		return nil
	}
	out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: s}
	// By default Envoy also fails an inverted match if the header is missing. A request that must
	// not have a value may have no value.
	out.TreatMissingHeaderAsEmpty = invert
	return out
}

func addQueryMatches(out *routev3.RouteMatch, params map[string]*networking.StringMatch) bool {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if name == "" {
			return false
		}
		q := &routev3.QueryParameterMatcher{Name: name}
		if value := params[name]; anyValue(value) {
			q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
		} else if s := stringMatcher(value); s != nil {
			q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: s}
		} else {
			return false
		}
		out.QueryParameters = append(out.QueryParameters, q)
	}
	return true
}
