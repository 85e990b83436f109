// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// World contains the services and endpoints of one push, regardless of visibility. It is immutable.
// The next push derives its world from it, at the cost of the hosts that changed.
type World struct {
	push *ads.PushContext
	// byName contains the services by host name in lower case, sorted by ComparePrecedence.
	byName pmap.Map[registry.Hostname, []*registry.Service]
	// aliasesTo contains the names of aliases by their targets, both in lower case.
	aliasesTo pmap.Map[registry.Hostname, []registry.Hostname]
}

// NewWorld returns the world of a push, derived from that of the last push, which may be nil.
func NewWorld(old *World, push *ads.PushContext) *World {
	w := &World{push: push}
	if old == nil {
		all := make(map[registry.Hostname][]*registry.Service)
		for s := range push.Services() {
			all[hostname.Lower(s.Hostname)] = append(all[hostname.Lower(s.Hostname)], s)
		}
		for name, list := range all {
			slices.SortStableFunc(list, registry.ComparePrecedence)
			w.byName = w.byName.Set(name, list)
			w.retarget(name, nil, list)
		}
		return w
	}
	w.byName, w.aliasesTo = old.byName, old.aliasesTo
	for _, changed := range push.ChangedHosts() {
		if !changed.EndpointsOnly {
			w.renew(changed.Hostname)
		}
	}
	return w
}

// renew updates the services of a host name. The server treats other spellings of the name as other
// hosts.
func (w *World) renew(host registry.Hostname) {
	name := hostname.Lower(host)
	before, _ := w.byName.Get(name)
	list := slices.DeleteFunc(slices.Clone(before), func(s *registry.Service) bool { return s.Hostname == host })
	list = append(list, w.push.ServicesNamed(host)...)
	slices.SortStableFunc(list, registry.ComparePrecedence)
	w.retarget(name, before, list)
	if len(list) == 0 {
		w.byName = w.byName.Delete(name)
	} else {
		w.byName = w.byName.Set(name, list)
	}
}

// retarget updates the aliases for the targets of a host's services.
func (w *World) retarget(name registry.Hostname, before, after []*registry.Service) {
	for _, t := range targetsOf(before) {
		list, _ := w.aliasesTo.Get(t)
		if list = slices.DeleteFunc(slices.Clone(list), func(n registry.Hostname) bool { return n == name }); len(list) > 0 {
			w.aliasesTo = w.aliasesTo.Set(t, list)
		} else {
			w.aliasesTo = w.aliasesTo.Delete(t)
		}
	}
	for _, t := range targetsOf(after) {
		list, _ := w.aliasesTo.Get(t)
		list = append(slices.Clone(list), name)
		slices.Sort(list)
		w.aliasesTo = w.aliasesTo.Set(t, list)
	}
}

// aliases returns the names of the aliases of a host, sorted. All names are in lower case.
func (w *World) aliases(host registry.Hostname) []registry.Hostname {
	list, _ := w.aliasesTo.Get(host)
	return list
}

// Hosts yields the services by host name in lower case, in unspecified order of names. Each list is
// sorted by ComparePrecedence.
func (w *World) Hosts() iter.Seq2[registry.Hostname, []*registry.Service] { return w.byName.All() }

// Named returns the services with a host name, sorted by ComparePrecedence. Names are
// case-insensitive.
func (w *World) Named(host registry.Hostname) []*registry.Service {
	list, _ := w.byName.Get(hostname.Lower(host))
	return list
}

// Endpoints returns the endpoints of a service in all shards, or nil.
func (w *World) Endpoints(svc *registry.Service) *xdsupdate.ServiceEndpoints {
	return w.push.Endpoints(svc.Hostname, svc.Attributes.Namespace)
}

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
