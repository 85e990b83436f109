// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// EgressHosts are the included and excluded hosts of an egress listener. It is immutable.
type EgressHosts struct{ Include, exclude egressHostList }

// egressHostList matches namespaces and names of hosts. It is immutable.
type egressHostList struct {
	List []egressHost
	// known and names index a long list. If known is nil, the list is searched sequentially.
	known map[egressHost]struct{}
	names *hostname.Set
	// wildcards is set if known contains wildcards.
	wildcards bool
}

// egressHost is "namespace/host" of a Sidecar.
type egressHost struct {
	namespace string // "*" means any
	Host      registry.Hostname
}

// NewEgressHosts parses the hosts of a listener for proxies of a namespace. The namespace "." is
// that of the proxies, even in a Sidecar of the root namespace. "~/*" imports no hosts.
func NewEgressHosts(hosts []string, namespace string) EgressHosts {
	var out EgressHosts
	for _, h := range hosts {
		ns, name, ok := strings.Cut(h, "/")
		if !ok || ns == "~" {
			continue
		}
		ns, excluded := strings.CutPrefix(ns, "~")
		if ns == "." {
			ns = namespace
		}
		parsed := egressHost{namespace: ns, Host: hostname.Canonical(name)}
		if excluded {
			out.exclude.List = append(out.exclude.List, parsed)
		} else {
			out.Include.List = append(out.Include.List, parsed)
		}
	}
	return out
}

func (h egressHost) inNamespace(namespace string) bool {
	return h.namespace == "*" || h.namespace == namespace
}

// indexed returns the hosts with an index for many lookups, so that a lookup does not scan the
// whole list.
func (e EgressHosts) indexed() EgressHosts {
	return EgressHosts{e.Include.indexed(), e.exclude.indexed()}
}

func (l egressHostList) indexed() egressHostList {
	if len(l.List) <= hostname.FewHosts.Get() {
		return l
	}
	l.known = make(map[egressHost]struct{}, len(l.List))
	names := make([]registry.Hostname, len(l.List))
	for i, h := range l.List {
		l.known[h] = struct{}{}
		l.wildcards = l.wildcards || h.Host.IsWildcard()
		names[i] = h.Host
	}
	l.names = hostname.NewSet(names)
	return l
}

// covers reports whether some host of the list covers a host name in a namespace.
func (l egressHostList) covers(namespace string, name registry.Hostname) bool {
	if l.known == nil {
		return slices.ContainsFunc(l.List, func(h egressHost) bool { return h.inNamespace(namespace) && name.SubsetOf(h.Host) })
	}
	if l.has(namespace, name) {
		return true
	}
	if l.wildcards {
		for wildcard := range hostname.Wildcards(name) {
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
		return slices.ContainsFunc(l.List, func(h egressHost) bool { return h.inNamespace(namespace) && h.Host.SubsetOf(host) })
	}
	for i := range l.names.Below(host) {
		if l.List[i].inNamespace(namespace) {
			return true
		}
	}
	return false
}

// Service reports whether the listener imports a service.
func (e EgressHosts) Service(s *registry.Service) bool {
	namespace, name := s.Attributes.Namespace, hostname.Lower(s.Hostname)
	return e.Include.covers(namespace, name) && !e.exclude.covers(namespace, name)
}

// VirtualService reports whether the listener imports a VirtualService, by any of its hosts.
func (e EgressHosts) VirtualService(v *objects.VirtualService) bool {
	return slices.ContainsFunc(v.Hosts, func(host registry.Hostname) bool {
		return e.Include.matches(v.Namespace, host) && !e.exclude.matches(v.Namespace, host)
	})
}
