// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// World contains the services and endpoints of one push, regardless of visibility. It is immutable.
// The next push derives its world from it, at the cost of the hosts that changed.
type World struct {
	push     *ads.PushContext
	settings *objects.Settings
	// byName contains all services. everywhere contains the hosts with a service that all namespaces
	// may see, and near, by namespace, the hosts with a service in it or exported to it by name. So
	// the cost of a namespace depends on the services that it may see, and not on all of the mesh.
	byName, everywhere hosts
	near               pmap.Map[string, hosts]
	// aliasesTo contains the names of aliases by their targets, both in lower case.
	aliasesTo pmap.Map[registry.Hostname, []registry.Hostname]
}

// hosts contains services by host name in lower case, sorted by ComparePrecedence.
type hosts = pmap.Map[registry.Hostname, []*registry.Service]

// NewWorld returns the world of the first push.
func NewWorld(push *ads.PushContext, settings *objects.Settings) *World {
	w := &World{push: push, settings: settings}
	w.fill(push.Services())
	return w
}

// fill adds services to an empty world. It makes each map at once, in a fraction of the time of set.
func (w *World) fill(services iter.Seq[*registry.Service]) {
	all := make(map[registry.Hostname][]*registry.Service)
	for s := range services {
		all[hostname.Lower(s.Hostname)] = append(all[hostname.Lower(s.Hostname)], s)
	}
	type entries = []*pmap.Entry[registry.Hostname, []*registry.Service]
	var byName, everywhere entries
	near := make(map[string]entries)
	for name, list := range all {
		slices.SortStableFunc(list, registry.ComparePrecedence)
		e := &pmap.Entry[registry.Hostname, []*registry.Service]{Key: name, Value: list}
		byName = append(byName, e)
		public, namespaces := w.reach(list)
		if public {
			everywhere = append(everywhere, e)
		}
		for _, ns := range namespaces {
			near[ns] = append(near[ns], e)
		}
		w.retarget(name, nil, list)
	}
	w.byName, w.everywhere = pmap.FromEntries(byName), pmap.FromEntries(everywhere)
	for ns, list := range near {
		w.near = w.near.Set(ns, pmap.FromEntries(list))
	}
}

// Next returns the world of the next push.
func (w *World) Next(push *ads.PushContext) *World {
	next := *w
	next.push = push
	for _, changed := range push.ChangedHosts() {
		if !changed.EndpointsOnly {
			next.renew(changed.Hostname)
		}
	}
	return &next
}

// reach reports whether all namespaces may see some of the services, and returns the namespaces that
// have some of them or may see them by name.
func (w *World) reach(services []*registry.Service) (everywhere bool, namespaces []string) {
	for _, s := range services {
		v := w.settings.Reach(s)
		everywhere = everywhere || v.Public
		namespaces = append(append(namespaces, s.Attributes.Namespace), v.Namespaces...)
	}
	slices.Sort(namespaces)
	return everywhere, slices.Compact(namespaces)
}

// renew updates the services of a host name. The server treats other spellings of the name as other
// hosts.
func (w *World) renew(host registry.Hostname) {
	name := hostname.Lower(host)
	before, _ := w.byName.Get(name)
	list := slices.DeleteFunc(slices.Clone(before), func(s *registry.Service) bool { return s.Hostname == host })
	list = append(list, w.push.ServicesNamed(host)...)
	slices.SortStableFunc(list, registry.ComparePrecedence)
	w.set(name, before, list)
}

// set replaces the services of a host name in lower case.
func (w *World) set(name registry.Hostname, before, list []*registry.Service) {
	w.retarget(name, before, list)
	w.byName = with(w.byName, name, list, len(list) > 0)
	_, former := w.reach(before)
	everywhere, namespaces := w.reach(list)
	w.everywhere = with(w.everywhere, name, list, everywhere)
	for _, ns := range slices.Concat(former, namespaces) {
		known, _ := w.near.Get(ns)
		if known = with(known, name, list, slices.Contains(namespaces, ns)); known.Len() == 0 {
			w.near = w.near.Delete(ns)
		} else {
			w.near = w.near.Set(ns, known)
		}
	}
}

// with returns the hosts with or without a name.
func with(of hosts, name registry.Hostname, services []*registry.Service, contained bool) hosts {
	if !contained {
		return of.Delete(name)
	}
	return of.Set(name, services)
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

// Len returns the number of host names.
func (w *World) Len() int { return w.byName.Len() }

// HostsFor yields Hosts without most of those that proxies of a namespace do not see:
// Settings.Visible decides about the others.
func (w *World) HostsFor(namespace string) iter.Seq2[registry.Hostname, []*registry.Service] {
	return func(yield func(registry.Hostname, []*registry.Service) bool) {
		for name, services := range w.everywhere.All() {
			if !yield(name, services) {
				return
			}
		}
		near, _ := w.near.Get(namespace)
		for name, services := range near.All() {
			if w.everywhere.Entry(name) == nil && !yield(name, services) {
				return
			}
		}
	}
}

// In yields the services of a namespace, in unspecified order. An empty namespace stands for all.
func (w *World) In(namespace string) iter.Seq[*registry.Service] {
	of, _ := w.near.Get(namespace)
	if namespace == "" {
		of = w.byName
	}
	return func(yield func(*registry.Service) bool) {
		for _, services := range of.All() {
			for _, s := range services {
				if (namespace == "" || s.Attributes.Namespace == namespace) && !yield(s) {
					return
				}
			}
		}
	}
}

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
	return hostname.Lower(registry.Hostname(svc.Attributes.Kubernetes.ExternalName))
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
