// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// egressHosts are the hosts of an egress listener: what it imports and what it
// excludes. It is immutable.
type egressHosts struct{ include, exclude []egressHost }

// egressHost is "namespace/host" of a Sidecar.
type egressHost struct {
	namespace string // "*": any
	host      registry.Hostname
}

// newEgressHosts reads the hosts of a listener for proxies of a namespace: "."
// is theirs, also in the Sidecar of the root namespace. "~/*" imports nothing.
func newEgressHosts(hosts []string, namespace string) egressHosts {
	var out egressHosts
	for _, h := range hosts {
		ns, name, ok := strings.Cut(h, "/")
		if !ok || ns == "~" {
			continue
		}
		ns, excluded := strings.CutPrefix(ns, "~")
		if ns == "." {
			ns = namespace
		}
		parsed := egressHost{namespace: ns, host: canonicalHost(name)}
		if excluded {
			out.exclude = append(out.exclude, parsed)
		} else {
			out.include = append(out.include, parsed)
		}
	}
	return out
}

func (h egressHost) inNamespace(namespace string) bool {
	return h.namespace == "*" || h.namespace == namespace
}

// service reports whether a service is imported.
func (e egressHosts) service(s *registry.Service) bool {
	matches := func(h egressHost) bool {
		return h.inNamespace(s.Attributes.Namespace) && lower(s.Hostname).SubsetOf(h.host)
	}
	return slices.ContainsFunc(e.include, matches) && !slices.ContainsFunc(e.exclude, matches)
}

// virtualService reports whether a VirtualService is imported: by any of its hosts.
func (e egressHosts) virtualService(v *virtualService) bool {
	return slices.ContainsFunc(v.hosts, func(host registry.Hostname) bool {
		matches := func(h egressHost) bool { return h.inNamespace(v.namespace) && host.Matches(h.host) }
		return slices.ContainsFunc(e.include, matches) && !slices.ContainsFunc(e.exclude, matches)
	})
}
