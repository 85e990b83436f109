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
