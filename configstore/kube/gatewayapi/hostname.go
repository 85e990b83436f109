// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "strings"

// anyHost is what no hostname means.
const anyHost = "*"

// hostOf returns a hostname, or anyHost for none.
func hostOf(name string) string {
	if name == "" {
		return anyHost
	}
	return name
}

// within reports whether all names that a matches are matched by b. A wildcard stands for one
// or more labels: *.example.com does not match example.com.
func within(a, b string) bool {
	if a == b || b == anyHost {
		return true
	}
	suffix, wild := strings.CutPrefix(b, "*")
	if !wild {
		return false
	}
	return strings.HasSuffix(strings.TrimPrefix(a, "*"), suffix) && a != suffix
}

// overlap reports whether some name is matched by both.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// narrower returns the one of two hosts that overlap that matches less.
func narrower(a, b string) string {
	if within(a, b) {
		return a
	}
	return b
}
