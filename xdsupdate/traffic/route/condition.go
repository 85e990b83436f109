// SPDX-License-Identifier: Apache-2.0

package route

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// condition reports whether a call has some properties.
type condition func(*call) bool

// every returns the condition that all conditions hold.
func every(list []condition) condition {
	if len(list) == 1 {
		return list[0]
	}
	return func(c *call) bool {
		for _, holds := range list {
			if !holds(c) {
				return false
			}
		}
		return true
	}
}

// some returns the condition that one of the conditions holds.
func some(list []condition) condition {
	if len(list) == 1 {
		return list[0]
	}
	return func(c *call) bool {
		for _, holds := range list {
			if holds(c) {
				return true
			}
		}
		return false
	}
}

// conditions compiles the elements of a list.
func conditions[M any](list []M, compile func(M) (condition, error)) ([]condition, error) {
	out := make([]condition, 0, len(list))
	for _, m := range list {
		c, err := compile(m)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// newHeader compiles a matcher of a header. A missing header fails also an inverted match, unless
// the match is for presence or takes it for empty.
func newHeader(m *routev3.HeaderMatcher) (condition, error) {
	name, invert, empty := headerName(m.GetName()), m.GetInvertMatch(), m.GetTreatMissingHeaderAsEmpty()
	if p, ok := m.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch); ok {
		return func(c *call) bool {
			_, there := c.header(name)
			return (there || empty) == p.PresentMatch != invert
		}, nil
	}
	matches, err := headerText(m)
	if err != nil {
		return nil, fmt.Errorf("the header %.100q: %w", m.GetName(), err)
	}
	return func(c *call) bool {
		value, there := c.header(name)
		return (there || empty) && matches(value) != invert
	}, nil
}

// headerName returns the name that call.header knows.
func headerName(name string) string {
	if strings.HasPrefix(name, ":") {
		return asciiLower(name)
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

// headerText compiles the condition on the value of a header. All gRPC servers know the deprecated
// fields.
//
//nolint:staticcheck // see above
func headerText(m *routev3.HeaderMatcher) (text, error) {
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_StringMatch:
		return newText(s.StringMatch)
	case *routev3.HeaderMatcher_ExactMatch:
		return exactly(s.ExactMatch, false), nil
	case *routev3.HeaderMatcher_PrefixMatch:
		return beginning(s.PrefixMatch, false), nil
	case *routev3.HeaderMatcher_SuffixMatch:
		return ending(s.SuffixMatch, false), nil
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return wholly(s.SafeRegexMatch.GetRegex())
	default:
		return nil, fmt.Errorf("a match of the kind %T", s)
	}
}

// newMetadata compiles a matcher of dynamic metadata. The metadata of filters other than those for
// tokens and policies is unknown.
func newMetadata(m *matcher.MetadataMatcher) (condition, error) {
	filter, invert := m.GetFilter(), m.GetInvert()
	known := filter == jwtauthn.Filter || filter == rbac.HTTPFilter || filter == rbac.TCPFilter
	var path []string
	for _, s := range m.GetPath() {
		path = append(path, s.GetKey())
	}
	matches, err := newValue(m.GetValue())
	if err != nil {
		return nil, fmt.Errorf("metadata of %.100q: %w", filter, err)
	}
	return func(c *call) bool {
		fields := c.metadata[filter]
		if fields == nil && !known {
			c.lacks("metadata of " + filter)
		}
		var value any = fields
		for _, key := range path {
			fields, _ := value.(map[string]any)
			value = fields[key]
		}
		return matches(value) != invert
	}, nil
}

// newValue compiles a matcher of a value in the types of encoding/json. Nil means that there is no
// value.
func newValue(m *matcher.ValueMatcher) (func(any) bool, error) {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_PresentMatch:
		return func(v any) bool { return p.PresentMatch == (v != nil) }, nil
	case *matcher.ValueMatcher_StringMatch:
		matches, err := newText(p.StringMatch)
		return func(v any) bool {
			s, ok := v.(string)
			return ok && matches(s)
		}, err
	case *matcher.ValueMatcher_ListMatch:
		matches, err := newValue(p.ListMatch.GetOneOf())
		return func(v any) bool {
			list, _ := v.([]any)
			return slices.ContainsFunc(list, matches)
		}, err
	case *matcher.ValueMatcher_OrMatch:
		var of []func(any) bool
		for _, one := range p.OrMatch.GetValueMatchers() {
			matches, err := newValue(one)
			if err != nil {
				return nil, err
			}
			of = append(of, matches)
		}
		return func(v any) bool {
			return slices.ContainsFunc(of, func(matches func(any) bool) bool { return matches(v) })
		}, nil
	default:
		return nil, fmt.Errorf("a match of the kind %T", p)
	}
}
