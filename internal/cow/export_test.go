// SPDX-License-Identifier: Apache-2.0

package cow

// Leaves returns the sizes of the leaves.
func (s Sorted[T]) Leaves() []int {
	var out []int
	for _, l := range s.leaves {
		out = append(out, len(l.items))
	}
	return out
}

// Insert, Delete and Replace are each an edit of one change.
func (s Sorted[T]) Insert(cmp func(a, b T) int, v T) Sorted[T] {
	e := Editor[T]{s: s}
	e.Insert(cmp, v)
	return e.s
}

func (s Sorted[T]) Delete(cmp func(a, b T) int, v T, same func(a, b T) bool) (Sorted[T], bool) {
	e := Editor[T]{s: s}
	ok := e.Delete(cmp, v, same)
	return e.s, ok
}

func (s Sorted[T]) Replace(cmp func(a, b T) int, old, v T, same func(a, b T) bool) (Sorted[T], bool) {
	e := Editor[T]{s: s}
	ok := e.Replace(cmp, old, v, same)
	return e.s, ok
}
