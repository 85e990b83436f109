// SPDX-License-Identifier: Apache-2.0

package registry

import "strings"

// Hostname is the DNS name of a service, such as "api.example.com", or a wildcard, such as
// "*.example.com" or "*". The zero value is not a valid name.
type Hostname string

// IsWildcard reports whether the name begins with "*".
func (h Hostname) IsWildcard() bool { return strings.HasPrefix(string(h), "*") }

// Matches reports whether both cover a common name: equal names, a wildcard and a name below it, or
// two wildcards if one covers the other. It is symmetric. "*.foo.com" does not match "foo.com".
func (h Hostname) Matches(o Hostname) bool { return h.SubsetOf(o) || o.SubsetOf(h) }

// SubsetOf reports whether o covers every name that h covers. A wildcard is
// never a subset of an exact name.
func (h Hostname) SubsetOf(o Hostname) bool {
	if h == o {
		return true
	}
	if !o.IsWildcard() {
		return false
	}
	suffix := string(o[1:])
	if h.IsWildcard() {
		return len(h) >= len(o) && strings.HasSuffix(string(h[1:]), suffix)
	}
	return len(h) >= len(suffix) && strings.HasSuffix(string(h), suffix)
}
