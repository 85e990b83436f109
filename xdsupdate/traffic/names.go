// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
)

// unixScheme begins the bind of a listener on a unix socket.
const unixScheme = "unix://"

// objectName is the namespace and name of an object.
type objectName struct{ namespace, name string }

func (n objectName) String() string { return n.namespace + "/" + n.name }

// parseObjectName parses "namespace/name", or "name" in the namespace given.
func parseObjectName(s, namespace string) objectName {
	if ns, name, ok := strings.Cut(s, "/"); ok {
		return objectName{ns, name}
	}
	return objectName{namespace, s}
}

// resolveHost returns the host name that an object in a namespace means: a short
// name (without a dot, no "*", no IP address) is a service of that namespace. Names
// are compared without case, so the result is in lower case, and addresses are
// compared as such, so that the result is canonical.
func resolveHost(host, namespace, domain string) registry.Hostname {
	name := canonicalHost(host)
	if name == "" || strings.ContainsAny(string(name), ".:") || name.IsWildcard() {
		return name
	}
	return name + registry.Hostname("."+namespace+".svc."+domain)
}

// canonicalHost returns a host name or an address as objects are compared by it.
func canonicalHost(host string) registry.Hostname {
	host = strings.ToLower(host)
	if strings.Contains(host, ":") {
		host = ipaddr.Canonical(host)
	}
	return registry.Hostname(host)
}

// lower is the form in which host names are compared.
func lower(host registry.Hostname) registry.Hostname {
	return registry.Hostname(strings.ToLower(string(host)))
}

// mostSpecific returns the most specific of the hosts that cover a name: itself,
// or else the longest wildcard. An absent result is "".
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

// maxHostName is the length of the longest name that DNS knows.
const maxHostName = 253

// wildcardsOf yields the wildcards that cover a name, the longest first: "*.b.c" and
// "*-a.b.c" cover "x-a.b.c". None is longer than what DNS knows, so that a name that is
// too long costs no more than others.
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

// setFields returns the fields that are set in a message.
func setFields(m interface{ ProtoReflect() protoreflect.Message }) []protoreflect.FieldDescriptor {
	var out []protoreflect.FieldDescriptor
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		out = append(out, f)
		return true
	})
	return out
}
