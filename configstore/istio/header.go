// SPDX-License-Identifier: Apache-2.0

package istio

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
