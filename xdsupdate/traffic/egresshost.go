// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// egressHosts are the hosts of an egress listener: what it imports and what it
// excludes. It is immutable.
type egressHosts struct{ include, exclude egressHostList }

// egressHostList finds which hosts are for a namespace and a name. It is immutable.
type egressHostList struct {
	list []egressHost
	// known has the list, and names its hosts, if it is asked often; nil: it is compared
	// one by one.
	known map[egressHost]struct{}
	names *hostSet
	// wildcards: some of the hosts are.
	wildcards bool
}

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
			out.exclude.list = append(out.exclude.list, parsed)
		} else {
			out.include.list = append(out.include.list, parsed)
		}
	}
	return out
}

func (h egressHost) inNamespace(namespace string) bool {
	return h.namespace == "*" || h.namespace == namespace
}

// indexed returns the hosts for being asked about many services: in the time that the
// answer takes, not in that of looking at all of them.
func (e egressHosts) indexed() egressHosts {
	return egressHosts{e.include.indexed(), e.exclude.indexed()}
}

func (l egressHostList) indexed() egressHostList {
	if len(l.list) <= fewHosts.Get() {
		return l
	}
	l.known = make(map[egressHost]struct{}, len(l.list))
	names := make([]registry.Hostname, len(l.list))
	for i, h := range l.list {
		l.known[h] = struct{}{}
		l.wildcards = l.wildcards || h.host.IsWildcard()
		names[i] = h.host
	}
	l.names = newHostSet(names)
	return l
}

// covers reports whether a host of the list covers a name of a namespace.
func (l egressHostList) covers(namespace string, name registry.Hostname) bool {
	if l.known == nil {
		return slices.ContainsFunc(l.list, func(h egressHost) bool { return h.inNamespace(namespace) && name.SubsetOf(h.host) })
	}
	if l.has(namespace, name) {
		return true
	}
	if l.wildcards {
		for wildcard := range wildcardsOf(name) {
			if l.has(namespace, wildcard) {
				return true
			}
		}
	}
	return false
}

func (l egressHostList) has(namespace string, name registry.Hostname) bool {
	if _, own := l.known[egressHost{namespace, name}]; own {
		return true
	}
	_, everywhere := l.known[egressHost{"*", name}]
	return everywhere
}

// matches reports whether a host of the list covers a host of a namespace, or is covered
// by it.
func (l egressHostList) matches(namespace string, host registry.Hostname) bool {
	if l.covers(namespace, host) {
		return true
	}
	if !host.IsWildcard() {
		return false
	}
	if l.known == nil {
		return slices.ContainsFunc(l.list, func(h egressHost) bool { return h.inNamespace(namespace) && h.host.SubsetOf(host) })
	}
	return slices.ContainsFunc(l.names.below(host), func(i int) bool { return l.list[i].inNamespace(namespace) })
}

// service reports whether a service is imported.
func (e egressHosts) service(s *registry.Service) bool {
	namespace, name := s.Attributes.Namespace, lower(s.Hostname)
	return e.include.covers(namespace, name) && !e.exclude.covers(namespace, name)
}

// virtualService reports whether a VirtualService is imported: by any of its hosts.
func (e egressHosts) virtualService(v *virtualService) bool {
	return slices.ContainsFunc(v.hosts, func(host registry.Hostname) bool {
		return e.include.matches(v.namespace, host) && !e.exclude.matches(v.namespace, host)
	})
}
