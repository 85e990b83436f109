// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// serverHost is a host of a server of a Gateway: "host" or "namespace/host".
type serverHost struct {
	// namespace is that of the VirtualServices that the host is for; empty: any.
	namespace string
	// name is canonicalHost's.
	name registry.Hostname
}

// newServerHosts parses the hosts of a server of a Gateway in a namespace.
func newServerHosts(hosts []string, namespace string) []serverHost {
	out := make([]serverHost, 0, len(hosts))
	for _, h := range hosts {
		host := serverHost{name: canonicalHost(h)}
		if ns, name, ok := strings.Cut(h, "/"); ok {
			host.name = canonicalHost(name)
			switch ns {
			case "*":
			case ".":
				host.namespace = namespace
			default:
				host.namespace = ns
			}
		}
		out = append(out, host)
	}
	return out
}

// admits reports whether the host is for objects of a namespace.
func (h serverHost) admits(namespace string) bool {
	return h.namespace == "" || h.namespace == namespace
}

// intersect returns the hosts that both a VirtualService of a namespace and the
// hosts of a server have, each once: of two that overlap, the narrower one.
func intersect(server []serverHost, hosts []registry.Hostname, namespace string) []registry.Hostname {
	var out []registry.Hostname
	for _, h := range hosts {
		for _, s := range server {
			if !s.admits(namespace) || !h.Matches(s.name) {
				continue
			}
			narrower := h
			if s.name.SubsetOf(h) {
				narrower = s.name
			}
			if !slices.Contains(out, narrower) {
				out = append(out, narrower)
			}
		}
	}
	return out
}
