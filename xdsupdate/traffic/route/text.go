// SPDX-License-Identifier: Apache-2.0

package route

import (
	"fmt"
	"regexp"
	"strings"

	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// text reports whether a text matches.
type text func(string) bool

// newText compiles a matcher of texts. An error means that it cannot be evaluated here.
func newText(m *matcher.StringMatcher) (text, error) {
	fold := m.GetIgnoreCase()
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return exactly(p.Exact, fold), nil
	case *matcher.StringMatcher_Prefix:
		return beginning(p.Prefix, fold), nil
	case *matcher.StringMatcher_Suffix:
		return ending(p.Suffix, fold), nil
	case *matcher.StringMatcher_Contains:
		part := p.Contains
		if !fold {
			return func(s string) bool { return strings.Contains(s, part) }, nil
		}
		part = asciiLower(part)
		return func(s string) bool { return strings.Contains(asciiLower(s), part) }, nil
	case *matcher.StringMatcher_SafeRegex:
		return wholly(p.SafeRegex.GetRegex())
	default:
		return nil, fmt.Errorf("a matcher of texts of the kind %T", p)
	}
}

func exactly(want string, fold bool) text {
	if fold {
		return func(s string) bool { return equalFold(s, want) }
	}
	return func(s string) bool { return s == want }
}

func beginning(want string, fold bool) text {
	if fold {
		return func(s string) bool { return len(s) >= len(want) && equalFold(s[:len(want)], want) }
	}
	return func(s string) bool { return strings.HasPrefix(s, want) }
}

func ending(want string, fold bool) text {
	if fold {
		return func(s string) bool { return len(s) >= len(want) && equalFold(s[len(s)-len(want):], want) }
	}
	return func(s string) bool { return strings.HasSuffix(s, want) }
}

// wholly matches texts that an RE2 expression matches as a whole.
func wholly(expression string) (text, error) {
	re, err := regexp.Compile(`^(?:` + expression + `)$`)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %.100q: %w", expression, err)
	}
	return re.MatchString, nil
}

// equalFold compares as Envoy does: only ASCII letters have a case.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lowerByte(a[i]) != lowerByte(b[i]) {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// asciiLower returns a text with ASCII letters in lower case. It does not copy texts without upper
// case.
func asciiLower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lowerByte(b[i])
			}
			return string(b)
		}
	}
	return s
}
