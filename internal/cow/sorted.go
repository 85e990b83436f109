// SPDX-License-Identifier: Apache-2.0

package cow

import (
	"iter"
	"slices"
	"sort"

	"github.com/pilotkit/pilotkit/internal/limit"
)

const (
	// maxLeaf is the largest number of elements in a leaf: a change copies one
	// leaf and one pointer per leaf, and 128 balances the two up to 10,000
	// elements and more.
	maxLeaf limit.Size = 128
	// fillLeaf is how full the leaves of a new sequence are, so that the first
	// inserts do not split them.
	fillLeaf limit.Size = 96
	// minLeaf is the size below which a leaf is joined with a neighbour.
	minLeaf limit.Size = 32
)

// Sorted is an immutable sequence of elements, sorted by a comparison that the
// caller gives with every call and that must always be the same. Elements that
// compare equal may be in it many times. The zero value is empty; copying one is
// O(1).
//
// A change costs O(log n) comparisons and copies at most 129 elements and n/64
// pointers, typically; n itself does not matter up to tens of thousands.
type Sorted[T any] struct {
	// leaves are sorted and never empty. Their elements, one leaf after the other, are the
	// sequence.
	leaves []*leaf[T]
	n      int
}

type leaf[T any] struct {
	// items has 1 to maxLeaf elements.
	items []T
	// owner is the edit that made the leaf. Until that edit ends, no returned sequence contains the
	// leaf.
	owner *edit
}

// FromSlice returns the sequence of the elements of a sorted slice, which it
// copies.
func FromSlice[T any](sorted []T) Sorted[T] { return Adopt(slices.Clone(sorted)) }

// Adopt is FromSlice without the copy: the sequence keeps parts of the slice,
// which must not be modified any more.
func Adopt[T any](sorted []T) Sorted[T] {
	if len(sorted) == 0 {
		return Sorted[T]{}
	}
	full := fillLeaf.Get()
	count := (len(sorted) + full - 1) / full
	if count == 1 { // most sequences are short: one allocation
		one := &struct {
			leaf  leaf[T]
			spine [1]*leaf[T]
		}{leaf: leaf[T]{items: slices.Clip(sorted)}}
		one.spine[0] = &one.leaf
		return Sorted[T]{leaves: one.spine[:], n: len(sorted)}
	}
	leaves, spine := make([]leaf[T], count), make([]*leaf[T], count)
	for i := range leaves {
		lo, hi := i*len(sorted)/count, (i+1)*len(sorted)/count
		leaves[i].items = sorted[lo:hi:hi]
		spine[i] = &leaves[i]
	}
	return Sorted[T]{leaves: spine, n: len(sorted)}
}

// Len returns the number of elements.
func (s Sorted[T]) Len() int { return s.n }

// All returns the elements in order.
func (s Sorted[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, l := range s.leaves {
			for _, v := range l.items {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// Chunks returns the elements in order, many at a time, which is faster than All.
// The slices are not empty, and part of the sequence: they must not be modified.
func (s Sorted[T]) Chunks() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for _, l := range s.leaves {
			if !yield(slices.Clip(l.items)) {
				return
			}
		}
	}
}

// Slice returns the elements in a new slice; nil if there are none.
func (s Sorted[T]) Slice() []T {
	if s.n == 0 {
		return nil
	}
	out := make([]T, 0, s.n)
	for _, l := range s.leaves {
		out = append(out, l.items...)
	}
	return out
}

// View returns the elements in a slice that may be part of the sequence, and must not be modified.
// It returns nil for an empty sequence. The elements of a short sequence are not copied.
func (s Sorted[T]) View() []T {
	if len(s.leaves) == 1 {
		return slices.Clip(s.leaves[0].items)
	}
	return s.Slice()
}

// Find returns the first element that compares equal to v.
func (s Sorted[T]) Find(cmp func(a, b T) int, v T) (T, bool) {
	return s.at(cmp, s.lower(cmp, v), v)
}

// FindFunc is Find for a caller without an element to compare with: cmp compares an element with
// the target of the search.
func (s Sorted[T]) FindFunc(cmp func(T) int) (T, bool) {
	i := sort.Search(len(s.leaves), func(i int) bool { return cmp(last(s.leaves[i])) >= 0 })
	if i < len(s.leaves) {
		items := s.leaves[i].items
		if j := sort.Search(len(items), func(j int) bool { return cmp(items[j]) >= 0 }); cmp(items[j]) == 0 {
			return items[j], true
		}
	}
	var none T
	return none, false
}

// at returns the element at a position, if that is equal to v.
func (s Sorted[T]) at(cmp func(a, b T) int, p position, v T) (T, bool) {
	if p.leaf < len(s.leaves) {
		if found := s.leaves[p.leaf].items[p.item]; cmp(found, v) == 0 {
			return found, true
		}
	}
	var none T
	return none, false
}

// Matching returns the elements that compare equal to v, in order.
func (s Sorted[T]) Matching(cmp func(a, b T) int, v T) iter.Seq[T] {
	return func(yield func(T) bool) {
		p := s.lower(cmp, v)
		for ; p.leaf < len(s.leaves); p = (position{leaf: p.leaf + 1}) {
			for _, found := range s.leaves[p.leaf].items[p.item:] {
				if cmp(found, v) != 0 || !yield(found) {
					return
				}
			}
		}
	}
}

// position is that of an element, or the end: {len(leaves), 0}.
type position struct{ leaf, item int }

// lower returns the position of the first element that is not less than v.
func (s Sorted[T]) lower(cmp func(a, b T) int, v T) position {
	i := sort.Search(len(s.leaves), func(i int) bool { return cmp(last(s.leaves[i]), v) >= 0 })
	if i == len(s.leaves) {
		return position{leaf: i}
	}
	items := s.leaves[i].items
	return position{i, sort.Search(len(items), func(j int) bool { return cmp(items[j], v) >= 0 })}
}

// upper returns the position of the first element that is greater than v.
func (s Sorted[T]) upper(cmp func(a, b T) int, v T) position {
	i := sort.Search(len(s.leaves), func(i int) bool { return cmp(last(s.leaves[i]), v) > 0 })
	if i == len(s.leaves) {
		return position{leaf: i}
	}
	items := s.leaves[i].items
	return position{i, sort.Search(len(items), func(j int) bool { return cmp(items[j], v) > 0 })}
}

// beside returns the result of lower if that is p or the position after it, in one leaf. The
// element at p is not considered.
func (s Sorted[T]) beside(cmp func(a, b T) int, p position, v T) (position, bool) {
	if p.leaf >= len(s.leaves) || p.item >= len(s.leaves[p.leaf].items) {
		return p, false
	}
	items := s.leaves[p.leaf].items
	if cmp(items[p.item], v) >= 0 {
		return p, p.item > 0 && cmp(items[p.item-1], v) < 0
	}
	p.item++
	return p, p.item < len(items) && cmp(items[p.item], v) >= 0
}

// search returns the position of the element that Delete would delete, from
// lower's answer on.
func (s Sorted[T]) search(cmp func(a, b T) int, p position, v T, same func(a, b T) bool) (position, bool) {
	for ; p.leaf < len(s.leaves); p = (position{leaf: p.leaf + 1}) {
		for items := s.leaves[p.leaf].items; p.item < len(items); p.item++ {
			switch {
			case cmp(items[p.item], v) != 0:
				return p, false
			case same(items[p.item], v):
				return p, true
			}
		}
	}
	return p, false
}

// neighbours reports whether v may stand in the place of the element at p and is
// what Insert would put there: not less than the element before it, less than
// the one after it.
func (s Sorted[T]) neighbours(cmp func(a, b T) int, p position, v T) bool {
	items := s.leaves[p.leaf].items
	switch {
	case p.item > 0:
		if cmp(items[p.item-1], v) > 0 {
			return false
		}
	case p.leaf > 0 && cmp(last(s.leaves[p.leaf-1]), v) > 0:
		return false
	}
	switch {
	case p.item+1 < len(items):
		return cmp(v, items[p.item+1]) < 0
	case p.leaf+1 < len(s.leaves):
		return cmp(v, s.leaves[p.leaf+1].items[0]) < 0
	default:
		return true
	}
}

func last[T any](l *leaf[T]) T { return l.items[len(l.items)-1] }
