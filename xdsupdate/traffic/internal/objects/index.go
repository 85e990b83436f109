// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// Index contains all policies of one snapshot. It is immutable. The next push derives its index
// from it, at the cost of the changes and of copied lists of pointers.
type Index struct {
	Settings *Settings
	// VirtualServices contains the VirtualServices with hosts, sorted by Compare.
	VirtualServices []*VirtualService
	Finder          Finder
	Rules           RuleIndex
	// Gateways are sorted by Compare.
	Gateways []*Gateway
	// Sidecars are grouped by namespace and sorted by compareSelective.
	Sidecars NamespaceLists[*Sidecar]
	// authorizations are grouped by namespace and sorted by Compare.
	authorizations NamespaceLists[*AuthorizationPolicy]
	// Peers are grouped by namespace and sorted by Compare.
	Peers NamespaceLists[*PeerAuthentication]
	// RequestAuthentications are grouped by namespace and sorted by Compare.
	RequestAuthentications NamespaceLists[*RequestAuthentication]
	Objects                pmap.Map[configstore.ConfigKey, Object]
	// LabelKeys counts the references of policies to labels, by key.
	LabelKeys pmap.Map[string, int]
}

// NewIndex returns the index of configs. Nil configs are skipped.
func NewIndex(configs map[configstore.ConfigKey]*configstore.Config, s *Settings) *Index {
	return buildIndex(s, func(yield func(configstore.ConfigKey, Object) bool) {
		for key, c := range configs {
			if o := NewObject(c, s); o != nil && !yield(key, o) {
				return
			}
		}
	})
}

// buildIndex returns an index of objects.
func buildIndex(s *Settings, objects iter.Seq2[configstore.ConfigKey, Object]) *Index {
	x := &Index{Settings: s}
	var all []Object
	for key, o := range objects {
		x.remember(key, nil, o)
		all = append(all, o)
	}
	x.VirtualServices = slices.DeleteFunc(Of[*VirtualService](all), (*VirtualService).Delegate)
	slices.SortFunc(x.VirtualServices, Compare)
	x.Gateways = Of[*Gateway](all)
	slices.SortFunc(x.Gateways, Compare)
	x.Rules = newRuleIndex(Of[*DestinationRule](all))
	x.Sidecars.add(all, compareSelective)
	x.authorizations.add(all, Compare)
	x.Peers.add(all, Compare)
	x.RequestAuthentications.add(all, Compare)
	x.Finder = newFinder(x.VirtualServices, x.DestinationsOf)
	return x
}

// fewChanges is the maximum number of changes for deriving an index from the last one, however
// small the index is.
const fewChanges limit.Size = 64

// WithAll returns the index after changes of different objects. Each change copies the lists that
// contain the object. Many changes therefore lead to a new index.
func (x *Index) WithAll(changes []Change) *Index {
	if len(changes) <= max(fewChanges.Get(), x.Objects.Len()/64) {
		for _, ch := range changes {
			x = x.with(ch.Key, ch.Before, ch.After)
		}
		return x
	}
	objects := x.Objects
	for _, ch := range changes {
		if ch.After == nil {
			objects = objects.Delete(ch.Key)
		} else {
			objects = objects.Set(ch.Key, ch.After)
		}
	}
	return buildIndex(x.Settings, objects.All())
}

// with returns the index with one object replaced by another with the same key. Both may be empty.
func (x *Index) with(key configstore.ConfigKey, before, after Object) *Index {
	out := *x
	out.remember(key, before, after)
	oldRule, newRule := both[*DestinationRule](before, after)
	out.Rules = x.Rules.with(oldRule, newRule)
	oldGateway, newGateway := both[*Gateway](before, after)
	out.Gateways = Replaced(x.Gateways, oldGateway, newGateway, Compare)
	out.Sidecars.replace(before, after, compareSelective)
	out.authorizations.replace(before, after, Compare)
	out.Peers.replace(before, after, Compare)
	out.RequestAuthentications.replace(before, after, Compare)
	oldRoutes, newRoutes := both[*VirtualService](before, after)
	out.replaceVirtualService(x, oldRoutes, newRoutes)
	return &out
}

// both returns two objects of a kind, or nil for objects of other kinds.
func both[T Object](before, after Object) (T, T) {
	b, _ := before.(T)
	a, _ := after.(T)
	return b, a
}

// remember replaces an object and updates the counts of its label keys.
func (x *Index) remember(key configstore.ConfigKey, before, after Object) {
	if after == nil {
		x.Objects = x.Objects.Delete(key)
	} else {
		x.Objects = x.Objects.Set(key, after)
	}
	x.countKeys(before, -1)
	x.countKeys(after, 1)
}

func (x *Index) countKeys(o Object, by int) {
	if o == nil {
		return
	}
	for _, k := range o.labelKeys() {
		n, _ := x.LabelKeys.Get(k)
		if n += by; n == 0 {
			x.LabelKeys = x.LabelKeys.Delete(k)
		} else {
			x.LabelKeys = x.LabelKeys.Set(k, n)
		}
	}
}

// replaceVirtualService replaces a VirtualService in a copy of an old index. Both may be nil. If it
// is a delegate, the destinations of the VirtualServices that include it are updated.
func (x *Index) replaceVirtualService(old *Index, before, after *VirtualService) {
	var roots []*VirtualService
	if before != nil && before.Delegate() {
		roots, before = old.Finder.Roots(before.ObjectName), nil
	}
	if after != nil && after.Delegate() {
		roots, after = old.Finder.Roots(after.ObjectName), nil // both have the same name
	}
	x.VirtualServices = Replaced(old.VirtualServices, before, after, Compare)
	if before != nil {
		x.Finder = x.Finder.without(before, old.DestinationsOf(before))
	}
	for _, root := range roots {
		if root != before {
			x.Finder = x.Finder.without(root, old.DestinationsOf(root)).with(root, x.DestinationsOf(root))
		}
	}
	if after != nil {
		x.Finder = x.Finder.with(after, x.DestinationsOf(after))
	}
}

// Replaced returns a copy of a sorted list with one element replaced by another. Both may be zero.
func Replaced[T comparable](list []T, before, after T, compare func(a, b T) int) []T {
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

// VirtualServicesFor returns the VirtualServices bound to a gateway, or to "mesh", that are visible
// to proxies of a namespace, in the order of precedence.
func (x *Index) VirtualServicesFor(gateway, namespace string) []*VirtualService {
	return SeenIn(x.Finder.BoundTo(gateway), namespace, func(*VirtualService) bool { return true })
}

// SeenIn returns the accepted ones among sorted VirtualServices that are visible to proxies of a
// namespace, in the order of precedence.
func SeenIn(list []*VirtualService, namespace string, accept func(*VirtualService) bool) []*VirtualService {
	out := make([]*VirtualService, 0, len(list))
	for _, v := range list {
		if v.Visibility.In(namespace) && accept(v) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *VirtualService) int { return cmp.Compare(a.Rank(namespace), b.Rank(namespace)) })
	return out
}

// GatewaysOf returns the Gateways that select a router, in order.
func (x *Index) GatewaysOf(p *Proxy) []*Gateway {
	var out []*Gateway
	for _, g := range x.Gateways {
		if g.Selects(p) {
			out = append(out, g)
		}
	}
	return out
}

// SidecarOf returns the Sidecar of a proxy: the first one in its namespace whose selector matches
// or is empty, or else the first one in the root namespace without a selector. It is nil if there
// is none, and for routers.
func (x *Index) SidecarOf(p *Proxy) *Sidecar {
	if p.Role == Router {
		return nil
	}
	for _, s := range x.Sidecars.In(p.Namespace) {
		if !s.Selective() || s.Selector.SubsetOf(p.Labels) {
			return s
		}
	}
	for _, s := range x.Sidecars.In(x.Settings.RootNamespace()) {
		if !s.Selective() {
			return s
		}
	}
	return nil
}

// Change is the replacement of an object by another one with the same name.
type Change struct {
	Key           configstore.ConfigKey
	Before, After Object // nil if there is none
}

// Revisions returns the old and the new revision, as far as they exist.
func (o Change) Revisions() []Object {
	return slices.DeleteFunc([]Object{o.Before, o.After}, func(o Object) bool { return o == nil })
}

// NamespaceLists contains the objects of a kind by namespace, each list sorted. It is immutable and
// shares unchanged lists with derived values.
type NamespaceLists[T interface {
	comparable
	Object
}] struct{ pmap.Map[string, []T] }

// add adds objects to empty lists.
func (l *NamespaceLists[T]) add(objects []Object, compare func(a, b T) int) {
	lists := make(map[string][]T)
	for _, o := range Of[T](objects) {
		lists[o.Base().Namespace] = append(lists[o.Base().Namespace], o)
	}
	for namespace, list := range lists {
		slices.SortFunc(list, compare)
		l.Map = l.Set(namespace, list)
	}
}

// In returns the objects of a namespace.
func (l NamespaceLists[T]) In(namespace string) []T {
	list, _ := l.Get(namespace)
	return list
}

// replace replaces an object by another one with the same name. Both may be nil or of another kind.
func (l *NamespaceLists[T]) replace(before, after Object, compare func(a, b T) int) {
	var none T
	old, next := both[T](before, after)
	if old == none && next == none {
		return
	}
	namespace := cmp.Or(old, next).Base().Namespace
	if list := Replaced(l.In(namespace), old, next, compare); len(list) > 0 {
		l.Map = l.Set(namespace, list)
	} else {
		l.Map = l.Delete(namespace)
	}
}
