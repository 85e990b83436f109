// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// index contains all policies of one snapshot. It is immutable. The next push derives its index
// from it, at the cost of the changes and of copied lists of pointers.
type index struct {
	settings *settings
	// virtualServices contains the VirtualServices with hosts, sorted by compareObjects.
	virtualServices []*virtualService
	finder          virtualServiceFinder
	rules           ruleIndex
	// gateways are sorted by compareObjects.
	gateways []*gateway
	// sidecars are grouped by namespace and sorted by compareSelective.
	sidecars namespaceLists[*sidecar]
	// authorizations are grouped by namespace and sorted by compareObjects.
	authorizations namespaceLists[*authorizationPolicy]
	// peers are grouped by namespace and sorted by compareObjects.
	peers namespaceLists[*peerAuthentication]
	// requestAuthentications are grouped by namespace and sorted by compareObjects.
	requestAuthentications namespaceLists[*requestAuthentication]
	objects                pmap.Map[configstore.ConfigKey, object]
	// labelKeys counts the references of policies to labels, by key.
	labelKeys pmap.Map[string, int]
}

// newIndex returns the index of configs. Nil configs are skipped.
func newIndex(configs map[configstore.ConfigKey]*configstore.Config, s *settings) *index {
	return buildIndex(s, func(yield func(configstore.ConfigKey, object) bool) {
		for key, c := range configs {
			if o := newObject(c, s); o != nil && !yield(key, o) {
				return
			}
		}
	})
}

// buildIndex returns an index of objects.
func buildIndex(s *settings, objects iter.Seq2[configstore.ConfigKey, object]) *index {
	x := &index{settings: s}
	var all []object
	for key, o := range objects {
		x.remember(key, nil, o)
		all = append(all, o)
	}
	x.virtualServices = slices.DeleteFunc(objectsOf[*virtualService](all), (*virtualService).delegate)
	slices.SortFunc(x.virtualServices, compareObjects)
	x.gateways = objectsOf[*gateway](all)
	slices.SortFunc(x.gateways, compareObjects)
	x.rules = newRuleIndex(objectsOf[*destinationRule](all))
	x.sidecars.add(all, compareSelective)
	x.authorizations.add(all, compareObjects)
	x.peers.add(all, compareObjects)
	x.requestAuthentications.add(all, compareObjects)
	var found virtualServiceLists
	for _, v := range x.virtualServices {
		found.add(v, x.destinationsOf(v))
	}
	x.finder = found.finder()
	return x
}

// fewChanges is the maximum number of changes for deriving an index from the last one, however
// small the index is.
const fewChanges limit.Size = 64

// withAll returns the index after changes of different objects. Each change copies the lists that
// contain the object. Many changes therefore lead to a new index.
func (x *index) withAll(changes []objectChange) *index {
	if len(changes) <= max(fewChanges.Get(), x.objects.Len()/64) {
		for _, ch := range changes {
			x = x.with(ch.key, ch.before, ch.after)
		}
		return x
	}
	objects := x.objects
	for _, ch := range changes {
		if ch.after == nil {
			objects = objects.Delete(ch.key)
		} else {
			objects = objects.Set(ch.key, ch.after)
		}
	}
	return buildIndex(x.settings, objects.All())
}

// with returns the index with one object replaced by another with the same key. Both may be empty.
func (x *index) with(key configstore.ConfigKey, before, after object) *index {
	out := *x
	out.remember(key, before, after)
	oldRule, _ := before.(*destinationRule)
	newRule, _ := after.(*destinationRule)
	out.rules = x.rules.with(oldRule, newRule)
	oldGateway, _ := before.(*gateway)
	newGateway, _ := after.(*gateway)
	out.gateways = replaced(x.gateways, oldGateway, newGateway, compareObjects)
	out.sidecars.replace(before, after, compareSelective)
	out.authorizations.replace(before, after, compareObjects)
	out.peers.replace(before, after, compareObjects)
	out.requestAuthentications.replace(before, after, compareObjects)
	oldRoutes, _ := before.(*virtualService)
	newRoutes, _ := after.(*virtualService)
	out.replaceVirtualService(x, oldRoutes, newRoutes)
	return &out
}

// remember replaces an object and updates the counts of its label keys.
func (x *index) remember(key configstore.ConfigKey, before, after object) {
	if after == nil {
		x.objects = x.objects.Delete(key)
	} else {
		x.objects = x.objects.Set(key, after)
	}
	x.countKeys(before, -1)
	x.countKeys(after, 1)
}

func (x *index) countKeys(o object, by int) {
	if o == nil {
		return
	}
	for _, k := range o.labelKeys() {
		n, _ := x.labelKeys.Get(k)
		if n += by; n == 0 {
			x.labelKeys = x.labelKeys.Delete(k)
		} else {
			x.labelKeys = x.labelKeys.Set(k, n)
		}
	}
}

// replaceVirtualService replaces a VirtualService in a copy of an old index. Both may be nil. If it
// is a delegate, the destinations of the VirtualServices that include it are updated.
func (x *index) replaceVirtualService(old *index, before, after *virtualService) {
	var roots []*virtualService
	if before != nil && before.delegate() {
		roots, before = old.finder.roots(before.objectName), nil
	}
	if after != nil && after.delegate() {
		roots, after = old.finder.roots(after.objectName), nil // both have the same name
	}
	x.virtualServices = replaced(old.virtualServices, before, after, compareObjects)
	if before != nil {
		x.finder = x.finder.without(before, old.destinationsOf(before))
	}
	for _, root := range roots {
		if root != before {
			x.finder = x.finder.without(root, old.destinationsOf(root)).with(root, x.destinationsOf(root))
		}
	}
	if after != nil {
		x.finder = x.finder.with(after, x.destinationsOf(after))
	}
}

// replaced returns a copy of a sorted list with one element replaced by another. Both may be zero.
func replaced[T comparable](list []T, before, after T, compare func(a, b T) int) []T {
	var none T
	if before == none && after == none {
		return list
	}
	out := make([]T, 0, len(list)+1)
	if before != none {
		i := slices.Index(list, before)
		list = append(append(out, list[:i]...), list[i+1:]...)
	} else {
		list = append(out, list...)
	}
	if after != none {
		i, _ := slices.BinarySearchFunc(list, after, compare)
		list = slices.Insert(list, i, after)
	}
	return list
}

// virtualServicesFor returns the VirtualServices bound to a gateway, or to "mesh", that are visible
// to proxies of a namespace, in the order of precedence.
func (x *index) virtualServicesFor(gateway, namespace string) []*virtualService {
	return seenIn(x.finder.boundTo(gateway), namespace, func(*virtualService) bool { return true })
}

// seenIn returns the accepted ones among sorted VirtualServices that are visible to proxies of a
// namespace, in the order of precedence.
func seenIn(list []*virtualService, namespace string, accept func(*virtualService) bool) []*virtualService {
	out := make([]*virtualService, 0, len(list))
	for _, v := range list {
		if v.visibility.in(namespace) && accept(v) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *virtualService) int { return cmp.Compare(a.rank(namespace), b.rank(namespace)) })
	return out
}

// gatewaysOf returns the Gateways that select a router, in order.
func (x *index) gatewaysOf(p *proxy) []*gateway {
	var out []*gateway
	for _, g := range x.gateways {
		if g.selects(p) {
			out = append(out, g)
		}
	}
	return out
}

// sidecarOf returns the Sidecar of a proxy: the first one in its namespace whose selector matches
// or is empty, or else the first one in the root namespace without a selector. It is nil if there
// is none, and for routers.
func (x *index) sidecarOf(p *proxy) *sidecar {
	if p.role == router {
		return nil
	}
	for _, s := range x.sidecars.in(p.namespace) {
		if !s.selective() || s.selector.SubsetOf(p.labels) {
			return s
		}
	}
	for _, s := range x.sidecars.in(x.settings.rootNamespace()) {
		if !s.selective() {
			return s
		}
	}
	return nil
}
