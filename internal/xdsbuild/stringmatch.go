// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"regexp/syntax"

	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// anyValue reports whether a match only requires that there is a value. It accepts the regular
// expression "*", which is invalid, because Istio's users write it, and empty prefixes, because
// Envoy rejects them.
func anyValue(m *networking.StringMatch) bool {
	switch t := m.GetMatchType().(type) {
	case nil:
		return true
	case *networking.StringMatch_Prefix:
		return t.Prefix == ""
	case *networking.StringMatch_Regex:
		return t.Regex == "*"
	default:
		return false
	}
}

// stringMatcher returns the match of a value, nil for an invalid regular expression and for a match
// that any value passes (anyValue).
func stringMatcher(m *networking.StringMatch) *matcher.StringMatcher {
	switch t := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: t.Exact}}
	case *networking.StringMatch_Prefix:
		if t.Prefix == "" {
			return nil
		}
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: t.Prefix}}
	case *networking.StringMatch_Regex:
		if !isRegex(t.Regex) {
			return nil
		}
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{
			SafeRegex: &matcher.RegexMatcher{Regex: t.Regex},
		}}
	default:
		return nil
	}
}

// isRegex reports whether a text is an RE2 expression. Go has the same syntax.
func isRegex(text string) bool {
	if text == "" {
		return false
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}
