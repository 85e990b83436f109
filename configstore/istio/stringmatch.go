// SPDX-License-Identifier: Apache-2.0

package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
)

// maxRegexLength is Istio's limit, which bounds the size of Envoy's programs.
const maxRegexLength = 1024

// checkAttributeMatch checks the match of something that every request has. Nil
// is fine.
func checkAttributeMatch(at *field, match *networking.StringMatch) {
	checkValueMatch(at, match)
	warnPointless(at, match)
}

// checkPathMatch is checkAttributeMatch for paths. The empty prefix is valid, because all paths
// have it, in Envoy too.
func checkPathMatch(at *field, match *networking.StringMatch) {
	if m, ok := match.GetMatchType().(*networking.StringMatch_Regex); ok {
		checkRegex(at.child("regex"), m.Regex)
	}
	warnPointless(at, match)
}

// checkValueMatch checks the match of something that a request may lack. An
// empty one asks for presence alone.
func checkValueMatch(at *field, match *networking.StringMatch) {
	switch m := match.GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		// Envoy refuses a whole route configuration over it.
		checkSet(at.child("prefix"), m.Prefix, "must not be empty")
	case *networking.StringMatch_Regex:
		checkRegex(at.child("regex"), m.Regex)
	}
}

// warnPointless warns of conditions that every request meets, or none.
func warnPointless(at *field, match *networking.StringMatch) {
	switch m := match.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		if m.Exact == "" {
			at.child("exact").warn("is empty: no request matches")
		}
	case nil:
		if match != nil {
			at.warn("has none of exact, prefix, regex: every request matches")
		}
	}
}

// checkOriginMatch checks the match of an origin, which must not be empty.
func checkOriginMatch(at *field, match *networking.StringMatch) {
	switch m := match.GetMatchType().(type) {
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

// maxPrograms bounds the total size of the programs of all regular expressions of an object. An
// Envoy needs 32 bytes for each instruction, and a second for four million.
const maxPrograms = 2 << 20

// checkPrograms refuses an object whose regular expressions together are too large.
func checkPrograms(spec *field) {
	if n := spec.out.programs; n > maxPrograms {
		spec.refuse("must have regular expressions with at most %d instructions together, has %d (RE2 program size, estimated)", maxPrograms, n)
	}
}

// checkRegex refuses what Envoy does not compile.
func checkRegex(at *field, expression string) {
	switch {
	case expression == "":
		at.refuse("must not be empty")
	case len(expression) > maxRegexLength:
		at.refuse("must have at most %d characters, has %d", maxRegexLength, len(expression))
	default:
		size, err := re2.CheckedSize(expression)
		if err != nil {
			at.refuse("must be a regular expression: %v", err)
		}
		at.out.programs += size
	}
}
