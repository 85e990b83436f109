// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"regexp/syntax"

	networking "istio.io/api/networking/v1alpha3"
)

// maxRegexLength is Istio's limit, which bounds the size of Envoy's programs.
const maxRegexLength = 1024

// checkStringMatch refuses a match that cannot match anything. Nil is fine.
func checkStringMatch(at *field, match *networking.StringMatch) {
	if match == nil {
		return
	}
	switch m := match.MatchType.(type) {
	case *networking.StringMatch_Exact:
		checkSet(at.child("exact"), m.Exact, "must not be empty")
	case *networking.StringMatch_Prefix:
		checkSet(at.child("prefix"), m.Prefix, "must not be empty")
	case *networking.StringMatch_Regex:
		checkRegex(at.child("regex"), m.Regex)
	default:
		at.refuse("must have one of exact, prefix, regex")
	}
}

// checkValueMatch is checkStringMatch where an empty match asks for presence
// alone.
func checkValueMatch(at *field, match *networking.StringMatch) {
	if m, ok := match.GetMatchType().(*networking.StringMatch_Regex); ok {
		checkRegex(at.child("regex"), m.Regex)
	}
}

// checkRegex refuses what is no regular expression of RE2, whose syntax is Go's.
func checkRegex(at *field, expression string) {
	switch {
	case expression == "":
		at.refuse("must not be empty")
	case len(expression) > maxRegexLength:
		at.refuse("must have at most %d characters, has %d", maxRegexLength, len(expression))
	default:
		// Parsing finds every error; compiling would only cost time.
		if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
			at.refuse("must be a regular expression: %v", err)
		}
	}
}
