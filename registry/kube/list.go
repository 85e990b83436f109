// SPDX-License-Identifier: Apache-2.0

package kube

// list is a short immutable list, which may contain an element several times. Most of the very many
// lists have one element, which needs no slice.
type list[T comparable] struct {
	first T    // the zero value if the list is empty
	more  *[]T // nil if there is at most one element
}

func (l list[T]) empty() bool {
	var none T
	return l.first == none
}

// all calls yield with each element until it returns false.
func (l list[T]) all(yield func(T) bool) {
	if l.empty() || !yield(l.first) || l.more == nil {
		return
	}
	for _, v := range *l.more {
		if !yield(v) {
			return
		}
	}
}

// with returns the list with v appended. Call it only once for a list, because the results of two
// calls may share memory.
func (l list[T]) with(v T) list[T] {
	switch {
	case l.empty():
		return list[T]{first: v}
	case l.more == nil:
		return list[T]{l.first, &[]T{v}}
	default:
		more := append(*l.more, v)
		return list[T]{l.first, &more}
	}
}

// without returns the list with one occurrence of v removed. If v is not in the list, it returns
// the list itself.
func (l list[T]) without(v T) list[T] {
	switch {
	case l.first != v && l.more == nil:
		return l
	case l.more == nil:
		return list[T]{}
	case l.first == v:
		l.first, v = (*l.more)[0], (*l.more)[0]
	}
	more := without(*l.more, v)
	if len(more) == 0 {
		return list[T]{first: l.first}
	}
	return list[T]{l.first, &more}
}
