// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// Finder indexes VirtualServices by gateway, host, destination and delegate. It is
// immutable. A change copies only the lists that it concerns. The lists are in the order of
// Compare.
type Finder struct {
	lists pmap.Map[finderKey, []*VirtualService]
	// Wildcards counts the wildcard hosts. Without any, a lookup by name is one step.
	Wildcards int
}

// finderKey identifies a list of VirtualServices.
type finderKey struct {
	by   finderRelation
	name string
}

type finderRelation uint8

const (
	// byGateway finds VirtualServices bound to a gateway, or to "mesh".
	byGateway finderRelation = iota
	// byHost finds VirtualServices with exactly this host, which may be a wildcard.
	byHost
	// byDestination finds VirtualServices that route to a host, directly or by a delegate.
	byDestination
	// byDelegate finds VirtualServices that include a delegate.
	byDelegate
)

func (f Finder) get(by finderRelation, name string) []*VirtualService {
	list, _ := f.lists.Get(finderKey{by, name})
	return list
}

// BoundTo returns the VirtualServices bound to a gateway, or to "mesh".
func (f Finder) BoundTo(gateway string) []*VirtualService {
	return f.get(byGateway, gateway)
}

// WithHost returns the VirtualServices with exactly this host, in lower case.
func (f Finder) WithHost(host registry.Hostname) []*VirtualService {
	return f.get(byHost, string(host))
}

// LeadingTo returns the VirtualServices that route to a host.
func (f Finder) LeadingTo(host registry.Hostname) []*VirtualService {
	return f.get(byDestination, string(host))
}

// DestinationsBelow yields the hosts that VirtualServices route to and that a wildcard covers.
func (f Finder) DestinationsBelow(wildcard registry.Hostname) iter.Seq[registry.Hostname] {
	return func(yield func(registry.Hostname) bool) {
		for key := range f.lists.All() {
			if name := registry.Hostname(key.name); key.by == byDestination && name.SubsetOf(wildcard) && !yield(name) {
				return
			}
		}
	}
}

// Roots returns the VirtualServices that include a delegate.
func (f Finder) Roots(delegate ObjectName) []*VirtualService {
	return f.get(byDelegate, delegate.String())
}

// finderKeys returns the set of keys of a VirtualService.
func finderKeys(v *VirtualService, destinations Destinations) map[finderKey]struct{} {
	keys := make(map[finderKey]struct{}, 2+len(destinations))
	for _, g := range v.Gateways {
		keys[finderKey{byGateway, g}] = struct{}{}
	}
	for _, rule := range v.Spec.GetHttp() {
		if rule.GetDelegate() != nil {
			keys[finderKey{byDelegate, DelegateName(v, rule).String()}] = struct{}{}
		}
	}
	for _, h := range v.Hosts {
		keys[finderKey{byHost, string(h)}] = struct{}{}
	}
	for h := range destinations {
		keys[finderKey{byDestination, string(h)}] = struct{}{}
	}
	return keys
}

func (f Finder) with(v *VirtualService, destinations Destinations) Finder {
	for key := range finderKeys(v, destinations) {
		f.Wildcards += key.wildcards()
		f.lists = f.lists.Set(key, Replaced(f.get(key.by, key.name), nil, v, Compare))
	}
	return f
}

func (f Finder) without(v *VirtualService, destinations Destinations) Finder {
	for key := range finderKeys(v, destinations) {
		f.Wildcards -= key.wildcards()
		if list := Replaced(f.get(key.by, key.name), v, nil, Compare); len(list) > 0 {
			f.lists = f.lists.Set(key, list)
		} else {
			f.lists = f.lists.Delete(key)
		}
	}
	return f
}

// wildcards returns 1 if the key is a wildcard host, else 0.
func (k finderKey) wildcards() int {
	if k.by == byHost && registry.Hostname(k.name).IsWildcard() {
		return 1
	}
	return 0
}

// newFinder returns the finder of sorted VirtualServices.
func newFinder(sorted []*VirtualService, destinationsOf func(*VirtualService) Destinations) (f Finder) {
	lists := make(map[finderKey][]*VirtualService)
	for _, v := range sorted {
		for key := range finderKeys(v, destinationsOf(v)) {
			lists[key] = append(lists[key], v)
		}
	}
	for key, list := range lists {
		f.Wildcards += len(list) * key.wildcards()
		f.lists = f.lists.Set(key, slices.Clip(list))
	}
	return f
}
