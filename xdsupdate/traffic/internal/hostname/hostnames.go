// SPDX-License-Identifier: Apache-2.0

package hostname

import (
	"iter"
	"strings"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
)

// Resolve returns the full host name that an object in a namespace refers to. A short name (no
// dot, no "*", no IP address) is a service of the namespace. The result is canonical: names are in
// lower case because they are compared case-insensitively, and have no dot at the end, which stands
// for the root of DNS; addresses have one spelling.
func Resolve(host, namespace, domain string) registry.Hostname {
	name := Canonical(host)
	if name == "" || strings.ContainsAny(host, ".:") || name.IsWildcard() {
		return name
	}
	return name + registry.Hostname("."+namespace+".svc."+domain)
}

// Canonical returns the canonical form of a host name or address, for comparisons.
func Canonical(host string) registry.Hostname {
	if strings.Contains(host, ":") {
		host = ipaddr.Canonical(host)
	}
	return Lower(registry.Hostname(host))
}

// Lower returns a host name in the form for comparisons: in lower case, without a dot at the end.
func Lower(host registry.Hostname) registry.Hostname {
	return registry.Hostname(strings.TrimSuffix(strings.ToLower(string(host)), "."))
}

// MostSpecific returns the most specific host that covers a name: the name itself, or else the
// longest wildcard. It returns "" if there is none.
func MostSpecific[T any](hosts map[registry.Hostname]T, name registry.Hostname) (registry.Hostname, bool) {
	if _, ok := hosts[name]; ok {
		return name, true
	}
	for candidate := range Wildcards(name) {
		if _, ok := hosts[candidate]; ok {
			return candidate, true
		}
	}
	return "", false
}

// maxHostName is the maximum length of a DNS name.
const maxHostName = 253

// Wildcards yields the wildcards that cover a name, the longest first. For example, "*.b.c" and
// "*-a.b.c" cover "x-a.b.c". Wildcards beyond the maximum length of DNS names are skipped, so that
// the cost for long names is bounded.
func Wildcards(name registry.Hostname) iter.Seq[registry.Hostname] {
	return func(yield func(registry.Hostname) bool) {
		s := strings.TrimPrefix(string(name), "*")
		for i := max(0, len(s)-maxHostName); i <= len(s); i++ {
			candidate := registry.Hostname("*" + s[i:])
			if name.SubsetOf(candidate) && !yield(candidate) {
				return
			}
		}
	}
}
