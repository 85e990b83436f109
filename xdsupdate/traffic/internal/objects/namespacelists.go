// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
)

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
