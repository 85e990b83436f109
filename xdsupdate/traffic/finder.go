// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// virtualServiceFinder indexes VirtualServices by gateway, host, destination and delegate. It is
// immutable. A change copies only the lists that it concerns. The lists are in the order of
// compareObjects.
type virtualServiceFinder struct {
	lists pmap.Map[finderKey, []*virtualService]
	// wildcards counts the wildcard hosts. Without any, a lookup by name is one step.
	wildcards int
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

func (f virtualServiceFinder) get(by finderRelation, name string) []*virtualService {
	list, _ := f.lists.Get(finderKey{by, name})
	return list
}

// boundTo returns the VirtualServices bound to a gateway, or to "mesh".
func (f virtualServiceFinder) boundTo(gateway string) []*virtualService {
	return f.get(byGateway, gateway)
}

// withHost returns the VirtualServices with exactly this host, in lower case.
func (f virtualServiceFinder) withHost(host registry.Hostname) []*virtualService {
	return f.get(byHost, string(host))
}

// leadingTo returns the VirtualServices that route to a host.
func (f virtualServiceFinder) leadingTo(host registry.Hostname) []*virtualService {
	return f.get(byDestination, string(host))
}

// roots returns the VirtualServices that include a delegate.
func (f virtualServiceFinder) roots(delegate objectName) []*virtualService {
	return f.get(byDelegate, delegate.String())
}

// finderKeys returns the set of keys of a VirtualService.
func finderKeys(v *virtualService, destinations destinations) map[finderKey]struct{} {
	keys := make(map[finderKey]struct{}, 2+len(destinations))
	for _, g := range v.gateways {
		keys[finderKey{byGateway, g}] = struct{}{}
	}
	for _, rule := range v.spec.GetHttp() {
		if rule.GetDelegate() != nil {
			keys[finderKey{byDelegate, delegateName(v, rule).String()}] = struct{}{}
		}
	}
	for _, h := range v.hosts {
		keys[finderKey{byHost, string(h)}] = struct{}{}
	}
	for h := range destinations {
		keys[finderKey{byDestination, string(h)}] = struct{}{}
	}
	return keys
}

func (f virtualServiceFinder) with(v *virtualService, destinations destinations) virtualServiceFinder {
	for key := range finderKeys(v, destinations) {
		f.wildcards += key.wildcards()
		list, _ := f.lists.Get(key)
		f.lists = f.lists.Set(key, replaced(list, nil, v, compareObjects))
	}
	return f
}

func (f virtualServiceFinder) without(v *virtualService, destinations destinations) virtualServiceFinder {
	for key := range finderKeys(v, destinations) {
		f.wildcards -= key.wildcards()
		list, _ := f.lists.Get(key)
		if list = replaced(list, v, nil, compareObjects); len(list) == 0 {
			f.lists = f.lists.Delete(key)
		} else {
			f.lists = f.lists.Set(key, list)
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

// virtualServiceLists collects the lists of a new finder. The zero value is empty.
type virtualServiceLists map[finderKey][]*virtualService

// add adds a VirtualService. Calls must be in the order of compareObjects.
func (l *virtualServiceLists) add(v *virtualService, destinations destinations) {
	if *l == nil {
		*l = make(virtualServiceLists)
	}
	for key := range finderKeys(v, destinations) {
		(*l)[key] = append((*l)[key], v)
	}
}

func (l virtualServiceLists) finder() virtualServiceFinder {
	var f virtualServiceFinder
	for key, list := range l {
		f.wildcards += len(list) * key.wildcards()
		f.lists = f.lists.Set(key, slices.Clip(list))
	}
	return f
}
