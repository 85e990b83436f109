// SPDX-License-Identifier: Apache-2.0

package csds

import (
	"fmt"
	"regexp"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// newNodeMatcher returns a function that reports whether any of the matchers matches a node.
// Without matchers it matches every node. The error names the unsupported field.
func newNodeMatcher(list []*matcher.NodeMatcher) (func(*core.Node) bool, error) {
	if len(list) == 0 {
		return func(*core.Node) bool { return true }, nil
	}
	var each []func(*core.Node) bool
	for i, m := range list {
		one, err := oneNode(m)
		if err != nil {
			return nil, fmt.Errorf("node_matchers[%d].%w", i, err)
		}
		each = append(each, one)
	}
	return func(n *core.Node) bool {
		for _, matches := range each {
			if matches(n) {
				return true
			}
		}
		return false
	}, nil
}

// oneNode returns a matcher that requires the ID and all metadata of m to match. Fields that m does
// not set match everything.
func oneNode(m *matcher.NodeMatcher) (func(*core.Node) bool, error) {
	id := func(string) bool { return true }
	if m.GetNodeId() != nil {
		var err error
		if id, err = text(m.GetNodeId()); err != nil {
			return nil, fmt.Errorf("node_id: %w", err)
		}
	}
	var each []func(*structpb.Struct) bool
	for i, s := range m.GetNodeMetadatas() {
		one, err := metadata(s)
		if err != nil {
			return nil, fmt.Errorf("node_metadatas[%d]: %w", i, err)
		}
		each = append(each, one)
	}
	return func(n *core.Node) bool {
		for _, matches := range each {
			if !matches(n.GetMetadata()) {
				return false
			}
		}
		return id(n.GetId())
	}, nil
}

// text returns a matcher of texts.
func text(m *matcher.StringMatcher) (func(string) bool, error) {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	by := func(compare func(s, want string) bool, want string) (func(string) bool, error) {
		want = fold(want)
		return func(s string) bool { return compare(fold(s), want) }, nil
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return by(func(s, want string) bool { return s == want }, p.Exact)
	case *matcher.StringMatcher_Prefix:
		return by(strings.HasPrefix, p.Prefix)
	case *matcher.StringMatcher_Suffix:
		return by(strings.HasSuffix, p.Suffix)
	case *matcher.StringMatcher_Contains:
		return by(strings.Contains, p.Contains)
	case *matcher.StringMatcher_SafeRegex:
		whole, err := regexp.Compile("^(?s:" + p.SafeRegex.GetRegex() + ")$")
		if err != nil {
			return nil, fmt.Errorf("safe_regex: %s", excerpt.Cut(err.Error()))
		}
		return whole.MatchString, nil
	default:
		return nil, fmt.Errorf("%T is not supported", p)
	}
}

// metadata returns a matcher of the value at a path of keys.
func metadata(m *matcher.StructMatcher) (func(*structpb.Struct) bool, error) {
	matches, err := value(m.GetValue())
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	if len(m.GetPath()) == 0 {
		return nil, fmt.Errorf("path: is empty")
	}
	for i, p := range m.GetPath() {
		if _, isKey := p.GetSegment().(*matcher.StructMatcher_PathSegment_Key); !isKey {
			return nil, fmt.Errorf("path[%d]: %T is not supported", i, p.GetSegment())
		}
	}
	return func(s *structpb.Struct) bool {
		v := structpb.NewStructValue(s)
		for _, p := range m.GetPath() {
			v = v.GetStructValue().GetFields()[p.GetKey()]
		}
		return matches(v)
	}, nil
}

// value returns a matcher of values. A missing value is nil.
func value(m *matcher.ValueMatcher) (func(*structpb.Value) bool, error) {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_NullMatch_:
		return func(v *structpb.Value) bool { _, is := v.GetKind().(*structpb.Value_NullValue); return is }, nil
	case *matcher.ValueMatcher_StringMatch:
		matches, err := text(p.StringMatch)
		return func(v *structpb.Value) bool {
			s, is := v.GetKind().(*structpb.Value_StringValue)
			return is && matches(s.StringValue)
		}, err
	case *matcher.ValueMatcher_BoolMatch:
		return func(v *structpb.Value) bool {
			b, is := v.GetKind().(*structpb.Value_BoolValue)
			return is && b.BoolValue == p.BoolMatch
		}, nil
	case *matcher.ValueMatcher_DoubleMatch:
		return number(p.DoubleMatch)
	case *matcher.ValueMatcher_PresentMatch:
		return func(v *structpb.Value) bool { return p.PresentMatch == (v.GetKind() != nil) }, nil
	default:
		return nil, fmt.Errorf("%T is not supported", p)
	}
}

// number returns a matcher of numbers.
func number(m *matcher.DoubleMatcher) (func(*structpb.Value) bool, error) {
	var matches func(float64) bool
	switch p := m.GetMatchPattern().(type) {
	case *matcher.DoubleMatcher_Exact:
		matches = func(n float64) bool { return n == p.Exact }
	case *matcher.DoubleMatcher_Range:
		matches = func(n float64) bool { return n >= p.Range.GetStart() && n < p.Range.GetEnd() }
	default:
		return nil, fmt.Errorf("%T is not supported", p)
	}
	return func(v *structpb.Value) bool {
		n, is := v.GetKind().(*structpb.Value_NumberValue)
		return is && matches(n.NumberValue)
	}, nil
}
