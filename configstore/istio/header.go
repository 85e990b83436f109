// SPDX-License-Identifier: Apache-2.0

package istio

import "strings"

// maxHeaderLength is Envoy's limit for the names and the values of headers.
const maxHeaderLength = 16384

// checkHeaderName rejects strings that are not HTTP header names by the pattern of istio.io/api:
// letters, digits, dashes and underscores.
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
		if c := name[i]; !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
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
	case len(name) > maxHeaderLength:
		return "must have at most 16384 bytes"
	case !isHeaderToken(name):
		return "must be a header name"
	default:
		return ""
	}
}
