// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "strings"

// anyHost is the meaning of an unset hostname.
const anyHost = "*"

// hostOf returns the hostname, or anyHost if it is empty.
func hostOf(name string) string {
	if name == "" {
		return anyHost
	}
	return name
}

// within reports whether b matches all names that a matches. A wildcard stands for one or more
// labels: *.example.com does not match example.com.
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

// overlap reports whether both match some name.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// narrower returns the more specific of two overlapping hosts.
func narrower(a, b string) string {
	if within(a, b) {
		return a
	}
	return b
}
