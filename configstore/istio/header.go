// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// checkHeaderName refuses what is not the name of an HTTP header by the pattern
// of istio.io/api: letters, digits, dashes and underscores.
func checkHeaderName(at *field, name string) {
	if name == "" {
		at.refuse("is required")
		return
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' && c != '_' {
			at.refuse("must be a header name (letters, digits, '-' and '_'), is %q", name)
			return
		}
	}
}

// isHeaderToken reports whether name is a token, as RFC 9110, section 5.6.2,
// wants the names of headers to be.
func isHeaderToken(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// headerNameProblem says what is wrong with the key of a map of headers, or
// returns "".
func headerNameProblem(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case !isHeaderToken(name):
		return "must be a header name"
	default:
		return ""
	}
}

// checkHeaders checks what is done to the headers of requests and responses; nil
// is fine.
func checkHeaders(at *field, headers *networking.Headers) {
	checkHeaderOperations(at.child("request"), headers.GetRequest())
	checkHeaderOperations(at.child("response"), headers.GetResponse())
}

func checkHeaderOperations(at *field, operations *networking.Headers_HeaderOperations) {
	checkHeaderValues(at, "set", operations.GetSet())
	checkHeaderValues(at, "add", operations.GetAdd())
	for i, name := range operations.GetRemove() {
		if problem := headerNameProblem(name); problem != "" {
			at.elem("remove", i).refuse("%s, is %q", problem, name)
		}
	}
}

func checkHeaderValues(at *field, name string, values map[string]string) {
	start := at.out.mark()
	for header, value := range values {
		if problem := headerNameProblem(header); problem != "" {
			at.entry(name, header).refuse("key %s", problem)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			at.entry(name, header).refuse("must not hold line breaks, is %q", value)
		}
	}
	at.out.sortSince(start)
}

// jwtClaimPrefix starts the keys of header matches that match claims instead.
const jwtClaimPrefix = "@request.auth.claims"

// checkHeaderMatches checks the matches of a map from names of headers, pseudo
// headers and JWT claims.
func checkHeaderMatches(at *field, name string, matches map[string]*networking.StringMatch) {
	start := at.out.mark()
	for header, match := range matches {
		if !strings.HasPrefix(header, jwtClaimPrefix) {
			if problem := headerNameProblem(strings.TrimPrefix(header, ":")); problem != "" {
				at.entry(name, header).refuse("key %s", problem)
			}
		}
		checkValueMatch(at.entry(name, header), match)
	}
	at.out.sortSince(start)
}
