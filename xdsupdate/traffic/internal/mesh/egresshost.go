// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// EgressHosts are the included and excluded hosts of an egress listener. It is immutable.
type EgressHosts struct{ include, exclude hostsByNamespace }

// hostsByNamespace are hosts by the namespace of their services, of which "*" means any.
type hostsByNamespace map[string]*hostname.Set

// NewEgressHosts parses the hosts of a listener for proxies of a namespace. The namespace "." is
// that of the proxies, even in a Sidecar of the root namespace. "~NAMESPACE" excludes hosts, and "~"
// alone excludes them in all namespaces, so that "~/*" imports nothing.
func NewEgressHosts(hosts []string, namespace string) EgressHosts {
	include, exclude := make(map[string][]registry.Hostname), make(map[string][]registry.Hostname)
	for _, h := range hosts {
		ns, name, ok := strings.Cut(h, "/")
		if !ok {
			continue
		}
		into := include
		ns, excluded := strings.CutPrefix(ns, "~")
		if excluded {
			into, ns = exclude, cmp.Or(ns, "*")
		}
		if ns == "." {
			ns = namespace
		}
		into[ns] = append(into[ns], hostname.Canonical(name))
	}
	return EgressHosts{newHosts(include), newHosts(exclude)}
}

func newHosts(names map[string][]registry.Hostname) hostsByNamespace {
	if len(names) == 0 {
		return nil // The usual case of exclude.
	}
	out := make(hostsByNamespace, len(names))
	for namespace, list := range names {
		out[namespace] = hostname.NewSet(list)
	}
	return out
}

// Empty reports whether no host is included.
func (e EgressHosts) Empty() bool { return len(e.include) == 0 }

// covers reports whether some host covers a host name in a namespace.
func (h hostsByNamespace) covers(namespace string, name registry.Hostname) bool {
	return h[namespace].Has(name) || h["*"].Has(name)
}

// matches reports whether some host covers a host in a namespace, or is covered by it.
func (h hostsByNamespace) matches(namespace string, host registry.Hostname) bool {
	return h.covers(namespace, host) || h[namespace].Covers(host) || h["*"].Covers(host)
}

// Service reports whether the listener imports a service.
func (e EgressHosts) Service(s *registry.Service) bool {
	namespace, name := s.Attributes.Namespace, hostname.Lower(s.Hostname)
	return e.include.covers(namespace, name) && !e.exclude.covers(namespace, name)
}

// VirtualService reports whether the listener imports a VirtualService, by any of its hosts.
func (e EgressHosts) VirtualService(v *objects.VirtualService) bool {
	return slices.ContainsFunc(v.Hosts, func(host registry.Hostname) bool {
		return e.include.matches(v.Namespace, host) && !e.exclude.matches(v.Namespace, host)
	})
}
