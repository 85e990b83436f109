// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// TargetOf returns the host name, in lower case, that an alias service stands for. It is empty for
// a service that is not an alias.
func TargetOf(svc *registry.Service) registry.Hostname {
	if svc.Resolution != registry.Alias || svc.Attributes.Kubernetes == nil {
		return ""
	}
	return registry.Hostname(strings.TrimSuffix(strings.ToLower(svc.Attributes.Kubernetes.ExternalName), "."))
}

// targetsOf returns the distinct alias targets of the services of one host name.
func targetsOf(services []*registry.Service) []registry.Hostname {
	var out []registry.Hostname
	for _, s := range services {
		if t := TargetOf(s); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// closure returns some names and all names that next leads to from them.
func closure(names []registry.Hostname, next func(registry.Hostname) []registry.Hostname) []registry.Hostname {
	for i := 0; i < len(names); i++ { // names grows without duplicates, so that loops end
		for _, n := range next(names[i]) {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// AliasNames returns the names, in lower case, of the direct and indirect aliases of a host. It
// follows an alias to a target only if accept returns true for the pair.
func AliasNames(w *World, host registry.Hostname, accept func(alias, target registry.Hostname) bool) []registry.Hostname {
	return closure([]registry.Hostname{host}, func(target registry.Hostname) []registry.Hostname {
		return slices.DeleteFunc(slices.Clone(w.aliases(target)), func(alias registry.Hostname) bool { return !accept(alias, target) })
	})[1:]
}

// Concrete resolves a chain of aliases. It returns the final host name and its service. The service
// is nil if the chain is a loop or its target does not exist. A service that is not an alias is its
// own result.
func Concrete(svc *Service, find func(registry.Hostname) *Service) (registry.Hostname, *Service) {
	seen := make([]registry.Hostname, 0, 1)
	host := svc.Host
	for svc != nil {
		target := TargetOf(svc.Of[0])
		if target == "" {
			return svc.Host, svc
		}
		if slices.Contains(seen, target) {
			return host, nil
		}
		seen = append(seen, target)
		host, svc = target, find(target)
	}
	return host, nil
}

// Meanings returns a host and all targets of its alias chains, regardless of visibility.
func Meanings(w *World, host registry.Hostname) []registry.Hostname {
	return closure([]registry.Hostname{host}, func(n registry.Hostname) []registry.Hostname { return targetsOf(w.Named(n)) })
}

// Related returns the names that a change of a host's services concerns: the host, all targets of
// its alias chains, and all aliases of these.
func Related(w *World, host registry.Hostname) []registry.Hostname {
	return closure(Meanings(w, host), w.aliases)
}

// RelatedIn returns the names that are related to a host in at least one of the worlds.
func RelatedIn(host registry.Hostname, worlds ...*World) []registry.Hostname {
	var out []registry.Hostname
	for _, w := range worlds {
		for _, n := range Related(w, host) {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}
