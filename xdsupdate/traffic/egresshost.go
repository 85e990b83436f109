// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// egressHosts are the included and excluded hosts of an egress listener. It is immutable.
type egressHosts struct{ include, exclude egressHostList }

// egressHostList matches namespaces and names of hosts. It is immutable.
type egressHostList struct {
	list []egressHost
	// known and names index a long list. If known is nil, the list is searched sequentially.
	known map[egressHost]struct{}
	names *hostSet
	// wildcards is set if known contains wildcards.
	wildcards bool
}

// egressHost is "namespace/host" of a Sidecar.
type egressHost struct {
	namespace string // "*" means any
	host      registry.Hostname
}

// newEgressHosts parses the hosts of a listener for proxies of a namespace. The namespace "." is
// that of the proxies, even in a Sidecar of the root namespace. "~/*" imports no hosts.
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

// indexed returns the hosts with an index for many lookups, so that a lookup does not scan the
// whole list.
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

// covers reports whether some host of the list covers a host name in a namespace.
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

// matches reports whether some host of the list covers a host in a namespace, or is covered by it.
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
	for i := range l.names.below(host) {
		if l.list[i].inNamespace(namespace) {
			return true
		}
	}
	return false
}

// service reports whether the listener imports a service.
func (e egressHosts) service(s *registry.Service) bool {
	namespace, name := s.Attributes.Namespace, lower(s.Hostname)
	return e.include.covers(namespace, name) && !e.exclude.covers(namespace, name)
}

// virtualService reports whether the listener imports a VirtualService, by any of its hosts.
func (e egressHosts) virtualService(v *virtualService) bool {
	return slices.ContainsFunc(v.hosts, func(host registry.Hostname) bool {
		return e.include.matches(v.namespace, host) && !e.exclude.matches(v.namespace, host)
	})
}
