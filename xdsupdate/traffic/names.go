// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
)

// unixScheme is the prefix of a bind to a unix socket.
const unixScheme = "unix://"

type objectName struct{ namespace, name string }

func (n objectName) String() string { return n.namespace + "/" + n.name }

// parseObjectName parses "namespace/name", or "name" in the given namespace.
func parseObjectName(s, namespace string) objectName {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return objectName{ns, name}
	}
	return objectName{namespace, s}
}

// resolveHost returns the full host name that an object in a namespace refers to. A short name (no
// dot, no "*", no IP address) is a service of the namespace. The result is canonical: names are in
// lower case because they are compared case-insensitively, and addresses have one spelling.
func resolveHost(host, namespace, domain string) registry.Hostname {
	name := canonicalHost(host)
	if name == "" || strings.ContainsAny(string(name), ".:") || name.IsWildcard() {
		return name
	}
	return name + registry.Hostname("."+namespace+".svc."+domain)
}

// canonicalHost returns the canonical form of a host name or address, for comparisons.
func canonicalHost(host string) registry.Hostname {
	host = strings.ToLower(host)
	if strings.Contains(host, ":") {
		host = ipaddr.Canonical(host)
	}
	return registry.Hostname(host)
}

// lower returns a host name in the form for comparisons.
func lower(host registry.Hostname) registry.Hostname {
	return registry.Hostname(strings.ToLower(string(host)))
}

// mostSpecific returns the most specific host that covers a name: the name itself, or else the
// longest wildcard. It returns "" if there is none.
func mostSpecific[T any](hosts map[registry.Hostname]T, name registry.Hostname) (registry.Hostname, bool) {
	if _, ok := hosts[name]; ok {
		return name, true
	}
	for candidate := range wildcardsOf(name) {
		if _, ok := hosts[candidate]; ok {
			return candidate, true
		}
	}
	return "", false
}

// maxHostName is the maximum length of a DNS name.
const maxHostName = 253

// wildcardsOf yields the wildcards that cover a name, the longest first. For example, "*.b.c" and
// "*-a.b.c" cover "x-a.b.c". Wildcards beyond the maximum length of DNS names are skipped, so that
// the cost for long names is bounded.
func wildcardsOf(name registry.Hostname) iter.Seq[registry.Hostname] {
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

func setFields(m interface{ ProtoReflect() protoreflect.Message }) []protoreflect.FieldDescriptor {
	var out []protoreflect.FieldDescriptor
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		out = append(out, f)
		return true
	})
	return out
}
