// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// header reports whether a request matches a header matcher.
func (c *Call) header(m *routev3.HeaderMatcher) bool {
	value, there := c.headerValue(strings.ToLower(m.GetName()))
	if !there {
		return false
	}
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		return s.PresentMatch
	case *routev3.HeaderMatcher_StringMatch:
		return matchesText(s.StringMatch, value)
	default:
		return matchesGRPCHeader(m, value)
	}
}

// matchesGRPCHeader compares a header by the fields that all gRPC servers know (grpcHeader).
//
//nolint:staticcheck // see above
func matchesGRPCHeader(m *routev3.HeaderMatcher, value string) bool {
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_ExactMatch:
		return value == s.ExactMatch
	case *routev3.HeaderMatcher_PrefixMatch:
		return strings.HasPrefix(value, s.PrefixMatch)
	case *routev3.HeaderMatcher_SuffixMatch:
		return strings.HasSuffix(value, s.SuffixMatch)
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return matchesWhole(s.SafeRegexMatch.GetRegex(), value)
	default:
		return false
	}
}

// headerValue returns a header by its lower-case name. A connection, whose method is unknown, has
// none.
func (c *Call) headerValue(name string) (value string, there bool) {
	request := c.Method != ""
	switch name {
	case ":method":
		return c.Method, request
	case ":authority", "host":
		return c.Authority, request
	case ":path":
		return c.Path, request
	}
	value, there = c.Headers[name]
	return value, there
}

// HasMetadata reports whether the dynamic metadata matches. The metadata of filters other than
// those for tokens and policies is unknown.
func (c *Call) HasMetadata(m *matcher.MetadataMatcher) bool {
	filter := m.GetFilter()
	var value any = c.Metadata[filter]
	if c.Metadata[filter] == nil && filter != jwtFilter && filter != HTTPFilter && filter != TCPFilter {
		c.lacks("metadata of " + filter)
	}
	for _, segment := range m.GetPath() {
		fields, _ := value.(map[string]any)
		value = fields[segment.GetKey()]
	}
	return matchesValue(m.GetValue(), value) != m.GetInvert()
}

// matchesValue compares a value in the types of encoding/json; nil means that there is no value.
func matchesValue(m *matcher.ValueMatcher, value any) bool {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_PresentMatch:
		return p.PresentMatch == (value != nil)
	case *matcher.ValueMatcher_StringMatch:
		s, ok := value.(string)
		return ok && matchesText(p.StringMatch, s)
	case *matcher.ValueMatcher_ListMatch:
		list, _ := value.([]any)
		return slices.ContainsFunc(list, func(one any) bool { return matchesValue(p.ListMatch.GetOneOf(), one) })
	case *matcher.ValueMatcher_OrMatch:
		return slices.ContainsFunc(p.OrMatch.GetValueMatchers(), func(one *matcher.ValueMatcher) bool { return matchesValue(one, value) })
	default:
		return false
	}
}

func matchesText(m *matcher.StringMatcher, value string) bool {
	cased := func(s string) string { return s }
	if m.GetIgnoreCase() {
		cased = strings.ToLower
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return cased(value) == cased(p.Exact)
	case *matcher.StringMatcher_Prefix:
		return strings.HasPrefix(cased(value), cased(p.Prefix))
	case *matcher.StringMatcher_Suffix:
		return strings.HasSuffix(cased(value), cased(p.Suffix))
	case *matcher.StringMatcher_Contains:
		return strings.Contains(cased(value), cased(p.Contains))
	case *matcher.StringMatcher_SafeRegex:
		return matchesWhole(p.SafeRegex.GetRegex(), value)
	default:
		return false
	}
}

// matchesWhole reports whether an RE2 expression matches the whole text.
func matchesWhole(expression, value string) bool {
	re, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && re.MatchString(value)
}

// oneOrdinarySegment matches the texts that the operator "*" of Envoy's templates accepts.
const oneOrdinarySegment = "[-a-zA-Z0-9._~%!$&'()*+,;:@=]+"

// matchesTemplate reports whether a path matches an Envoy template.
func matchesTemplate(config *anypb.Any, path string) bool {
	m := &template.UriTemplateMatchConfig{}
	if config.UnmarshalTo(m) != nil {
		return false
	}
	operators := strings.NewReplacer(`\*\*`, ordinaryPath, `\*`, oneOrdinarySegment)
	return matchesWhole(operators.Replace(regexp.QuoteMeta(m.GetPathTemplate())), path)
}
