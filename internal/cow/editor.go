// SPDX-License-Identifier: Apache-2.0

package cow

import "slices"

// Editor makes many changes to a sequence and copies each part of it only once.
// It is for one goroutine.
type Editor[T any] struct {
	s Sorted[T]
	// edit marks the leaves that were made since the last call of Sorted. Without
	// one it is made with the second change: after only one there is nothing to
	// reuse.
	edit    *edit
	changed bool
	// near is the position of the last search, because consecutive changes are often close to each
	// other.
	near position
	// ownsSpine: s.leaves was made by this editor and is in no sequence that was returned.
	ownsSpine bool
}

// edit is compared by its address, so it must have a size.
type edit struct{ _ byte }

// Edit returns an editor that starts with s, for about so many changes. Any number
// may follow.
func (s Sorted[T]) Edit(changes int) *Editor[T] {
	e := &Editor[T]{s: s}
	if changes > 1 {
		e.edit = &edit{}
	}
	return e
}

// Sorted returns the sequence with all changes so far. The editor may be used further, and does not
// change the returned sequence.
func (e *Editor[T]) Sorted() Sorted[T] {
	e.edit, e.changed, e.ownsSpine = nil, false, false
	return e.s
}

// Find is Sorted.Find.
func (e *Editor[T]) Find(cmp func(a, b T) int, v T) (T, bool) { return e.s.at(cmp, e.lower(cmp, v), v) }

// Insert adds an element after the elements that compare equal to it.
func (e *Editor[T]) Insert(cmp func(a, b T) int, v T) {
	e.s.n++
	e.begin(1)
	p := e.s.upper(cmp, v)
	if p.leaf == len(e.s.leaves) {
		if p.leaf == 0 {
			e.s.leaves = append(e.s.leaves, &leaf[T]{items: []T{v}, owner: e.edit})
			return
		}
		p = position{p.leaf - 1, len(e.s.leaves[p.leaf-1].items)}
	}
	l := e.s.leaves[p.leaf]
	if e.owns(l) {
		l.items = slices.Insert(l.items, p.item, v)
	} else {
		items := make([]T, len(l.items)+1)
		copy(items, l.items[:p.item])
		items[p.item] = v
		copy(items[p.item+1:], l.items[p.item:])
		e.s.leaves[p.leaf] = &leaf[T]{items: items, owner: e.edit}
	}
	e.split(p.leaf)
}

// Delete removes the first element that compares equal to v and is the same. It reports whether there was one.
func (e *Editor[T]) Delete(cmp func(a, b T) int, v T, same func(a, b T) bool) bool {
	p, ok := e.search(cmp, v, same)
	if ok {
		e.deleteAt(p)
	}
	return ok
}

// Replace puts v into the place of the element that Delete would remove, or into its own. It returns false if there
// is none.
func (e *Editor[T]) Replace(cmp func(a, b T) int, old, v T, same func(a, b T) bool) bool {
	p, ok := e.search(cmp, old, same)
	switch {
	case !ok:
		return false
	case e.s.neighbours(cmp, p, v):
		e.begin(0)
		l := e.s.leaves[p.leaf]
		if !e.owns(l) {
			l = &leaf[T]{items: slices.Clone(l.items), owner: e.edit}
			e.s.leaves[p.leaf] = l
		}
		l.items[p.item] = v
	default:
		e.deleteAt(p)
		e.Insert(cmp, v)
	}
	return true
}

// search returns the position of the element that Delete would delete.
func (e *Editor[T]) search(cmp func(a, b T) int, v T, same func(a, b T) bool) (position, bool) {
	return e.s.search(cmp, e.lower(cmp, v), v, same)
}

// lower is Sorted.lower, in a few comparisons if it is near.
func (e *Editor[T]) lower(cmp func(a, b T) int, v T) position {
	p, ok := e.s.beside(cmp, e.near, v)
	if !ok {
		p = e.s.lower(cmp, v)
	}
	e.near = p
	return p
}

func (e *Editor[T]) deleteAt(p position) {
	e.s.n--
	e.begin(0)
	l := e.s.leaves[p.leaf]
	switch {
	case len(l.items) == 1:
		e.s.leaves = slices.Delete(e.s.leaves, p.leaf, p.leaf+1)
		return
	case e.owns(l):
		l.items = slices.Delete(l.items, p.item, p.item+1)
	default:
		items := make([]T, len(l.items)-1)
		copy(items, l.items[:p.item])
		copy(items[p.item:], l.items[p.item+1:])
		e.s.leaves[p.leaf] = &leaf[T]{items: items, owner: e.edit}
	}
	e.join(p.leaf)
}

// split divides a leaf that has become too large, and is the editor's own.
func (e *Editor[T]) split(i int) {
	l := e.s.leaves[i]
	if len(l.items) <= maxLeaf.Get() {
		return
	}
	half := len(l.items) / 2
	right := &leaf[T]{items: slices.Clone(l.items[half:]), owner: e.edit}
	clear(l.items[half:])
	l.items = l.items[:half]
	e.s.leaves = slices.Insert(e.s.leaves, i+1, right)
}

// join unites a leaf that has become small with a neighbour that has room, so
// that many deletes do not leave many small leaves.
func (e *Editor[T]) join(i int) {
	if len(e.s.leaves[i].items) < minLeaf.Get() && !e.joinNext(i-1) {
		e.joinNext(i)
	}
}

// joinNext unites leaves i and i+1 if both exist and have room.
func (e *Editor[T]) joinNext(i int) bool {
	if i < 0 || i+1 >= len(e.s.leaves) {
		return false
	}
	a, b := e.s.leaves[i].items, e.s.leaves[i+1].items
	if len(a)+len(b) > fillLeaf.Get() {
		return false
	}
	e.s.leaves[i] = &leaf[T]{items: slices.Concat(a, b), owner: e.edit}
	e.s.leaves = slices.Delete(e.s.leaves, i+1, i+2)
	return true
}

// owns reports whether the leaf may be changed in place.
func (e *Editor[T]) owns(l *leaf[T]) bool { return e.edit != nil && l.owner == e.edit }

// begin makes e.s.leaves the editor's own, with room for some more leaves, before
// a change.
func (e *Editor[T]) begin(room int) {
	if e.changed && e.edit == nil {
		e.edit = &edit{}
	}
	e.changed = true
	if e.ownsSpine {
		return
	}
	leaves := make([]*leaf[T], len(e.s.leaves), len(e.s.leaves)+room)
	copy(leaves, e.s.leaves)
	e.s.leaves, e.ownsSpine = leaves, true
}
