// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// serverHost is a host of a Gateway server, "host" or "namespace/host".
type serverHost struct {
	// namespace restricts the VirtualServices that may use the host. It is empty for any namespace.
	namespace string
	// name is canonical, see hostname.Canonical.
	name registry.Hostname
}

// newServerHosts parses the hosts of a Gateway server in a namespace.
func newServerHosts(hosts []string, namespace string) []serverHost {
	out := make([]serverHost, 0, len(hosts))
	for _, h := range hosts {
		host := serverHost{name: hostname.Canonical(h)}
		if ns, name, ok := strings.Cut(h, "/"); ok {
			host.name = hostname.Canonical(name)
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

// admits reports whether objects of a namespace may use the host.
func (h serverHost) admits(namespace string) bool {
	return h.namespace == "" || h.namespace == namespace
}

// intersect returns the distinct hosts that a VirtualService of a namespace and a server have in
// common. If two hosts overlap, the narrower one is in the result. The set names contains the names
// of the server's hosts.
func intersect(server []serverHost, names *hostname.Set, hosts []registry.Hostname, namespace string) []registry.Hostname {
	var out []registry.Hostname
	have := make(map[registry.Hostname]struct{}, min(len(hosts), hostname.FewHosts.Get()))
	for _, h := range hosts {
		for _, i := range names.Matching(h) {
			s := server[i]
			if !s.admits(namespace) {
				continue
			}
			narrower := h
			if s.name.SubsetOf(h) {
				narrower = s.name
			}
			if _, again := have[narrower]; !again {
				have[narrower] = struct{}{}
				out = append(out, narrower)
			}
		}
	}
	return out
}

func namesOf(hosts []serverHost) []registry.Hostname {
	out := make([]registry.Hostname, len(hosts))
	for i, h := range hosts {
		out[i] = h.name
	}
	return out
}
