// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
)

// namespaceLists contains the objects of a kind by namespace, each list sorted. It is immutable and
// shares unchanged lists with derived values.
type namespaceLists[T interface {
	comparable
	object
}] struct{ pmap.Map[string, []T] }

// add adds objects to empty lists.
func (l *namespaceLists[T]) add(objects []object, compare func(a, b T) int) {
	lists := make(map[string][]T)
	for _, o := range objectsOf[T](objects) {
		lists[o.base().namespace] = append(lists[o.base().namespace], o)
	}
	for namespace, list := range lists {
		slices.SortFunc(list, compare)
		l.Map = l.Set(namespace, list)
	}
}

func (l namespaceLists[T]) in(namespace string) []T {
	list, _ := l.Get(namespace)
	return list
}

// replace replaces an object by another one with the same name. Both may be nil or of another kind.
func (l *namespaceLists[T]) replace(before, after object, compare func(a, b T) int) {
	old, had := before.(T)
	next, has := after.(T)
	if !had && !has {
		return
	}
	if !had {
		before = after
	}
	namespace := before.base().namespace
	if list := replaced(l.in(namespace), old, next, compare); len(list) > 0 {
		l.Map = l.Set(namespace, list)
	} else {
		l.Map = l.Delete(namespace)
	}
}
