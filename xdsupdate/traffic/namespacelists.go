// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
)

// namespaceLists contains the objects of a kind by namespace, each list sorted. It is immutable and
// shares unchanged lists with derived values.
type namespaceLists[T any] struct{ pmap.Map[string, []*T] }

// newNamespaceLists sorts the lists and takes ownership of them.
func newNamespaceLists[T any](lists map[string][]*T, compare func(a, b *T) int) (out namespaceLists[T]) {
	for namespace, list := range lists {
		slices.SortFunc(list, compare)
		out.Map = out.Set(namespace, list)
	}
	return out
}

func (l namespaceLists[T]) in(namespace string) []*T {
	list, _ := l.Get(namespace)
	return list
}

// with returns the lists with one object of a namespace replaced by another. Both may be nil.
func (l namespaceLists[T]) with(namespace string, before, after *T, compare func(a, b *T) int) namespaceLists[T] {
	if list := replaced(l.in(namespace), before, after, compare); len(list) > 0 {
		return namespaceLists[T]{l.Set(namespace, list)}
	}
	return namespaceLists[T]{l.Delete(namespace)}
}
