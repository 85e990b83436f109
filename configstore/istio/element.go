// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"iter"
	"maps"
	"slices"
)

// elements yields the elements of the list of that name, each with its place. No
// list may hold null: such an element is refused and left out.
func elements[T comparable](at *field, name string, list []T) iter.Seq2[*field, T] {
	return func(yield func(*field, T) bool) {
		var null T
		for i, element := range list {
			place := at.elem(name, i)
			if element == null {
				place.refuse("must not be null")
			} else if !yield(place, element) {
				return
			}
		}
	}
}

// entries yields the values of the map in the field name in the order of their keys, each with its
// place, which includes the key. The same object has the same findings in the same order every time.
// The places are allocated, so the checks of every endpoint use loops of their own.
func entries[V any](at *field, name string, values map[string]V) iter.Seq2[*field, V] {
	return func(yield func(*field, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if !yield(at.entry(name, key), values[key]) {
				return
			}
		}
	}
}
