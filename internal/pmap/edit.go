// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"go.uber.org/atomic"
)

// edit is one change of a tree. Its methods return the node that takes the place
// of the one they were given: the same if that could be changed in place.
type edit[K comparable, V any] struct {
	hash  hasher[K]
	owner *owner
	// grown is by how many entries the tree has grown.
	grown int
}

// put returns n with an entry, whose key has the hash h, at a depth of shift bits.
func (e *edit[K, V]) put(n *node[K, V], entry *Entry[K, V], h uint64, shift int) *node[K, V] {
	switch {
	case n == nil:
		e.grown++
		return e.one(entry, h, shift)
	case shift >= bucketShift:
		return e.putInBucket(n, entry)
	}
	bit := uint32(1) << (h >> shift & levelMask)
	switch {
	case n.childMap&bit != 0:
		i := index(n.childMap, bit)
		child := n.children[i].Load()
		if c := e.put(child, entry, h, shift+levelBits); c != child {
			return e.withChild(n, i, c)
		}
		return n
	case n.entryMap&bit != 0:
		i := index(n.entryMap, bit)
		old := n.entries[i].Load()
		if old.Key == entry.Key {
			return e.withEntry(n, i, entry)
		}
		e.grown++
		child := e.one(old, e.hash.of(old.Key), shift+levelBits)
		child = e.putNew(child, entry, h, shift+levelBits)
		return &node[K, V]{
			owner: e.owner, entryMap: n.entryMap &^ bit, childMap: n.childMap | bit,
			entries:  without(n.entries, i),
			children: insert(n.children, index(n.childMap, bit), child),
		}
	default:
		e.grown++
		return &node[K, V]{
			owner: e.owner, entryMap: n.entryMap | bit, childMap: n.childMap,
			entries:  insert(n.entries, index(n.entryMap, bit), entry),
			children: e.share(n),
		}
	}
}

// putNew is put for a key that n does not have and that is counted already.
func (e *edit[K, V]) putNew(n *node[K, V], entry *Entry[K, V], h uint64, shift int) *node[K, V] {
	grown := e.grown
	n = e.put(n, entry, h, shift)
	e.grown = grown
	return n
}

func (e *edit[K, V]) putInBucket(n *node[K, V], entry *Entry[K, V]) *node[K, V] {
	if i, old := n.inBucket(entry.Key); old != nil {
		return e.withEntry(n, i, entry)
	}
	e.grown++
	return &node[K, V]{owner: e.owner, entries: insert(n.entries, len(n.entries), entry)}
}

// remove returns n without the entry of a key, or nil if nothing remains.
func (e *edit[K, V]) remove(n *node[K, V], k K, h uint64, shift int) *node[K, V] {
	if shift >= bucketShift {
		i, old := n.inBucket(k)
		if old == nil {
			return n
		}
		return e.withoutEntry(n, i, 0)
	}
	bit := uint32(1) << (h >> shift & levelMask)
	switch {
	case n.entryMap&bit != 0:
		i := index(n.entryMap, bit)
		if n.entries[i].Load().Key != k {
			return n
		}
		return e.withoutEntry(n, i, bit)
	case n.childMap&bit != 0:
		i := index(n.childMap, bit)
		child := n.children[i].Load()
		c := e.remove(child, k, h, shift+levelBits)
		if c == child {
			return n
		}
		// A child has at least two entries below it, so c is not nil. If one is
		// left it moves up, so that equal contents have equal trees.
		if last := c.single(); last != nil {
			return &node[K, V]{
				owner: e.owner, entryMap: n.entryMap | bit, childMap: n.childMap &^ bit,
				entries:  insert(n.entries, index(n.entryMap, bit), last),
				children: without(n.children, i),
			}
		}
		return e.withChild(n, i, c)
	}
	return n
}

// one returns a node with one entry.
func (e *edit[K, V]) one(entry *Entry[K, V], h uint64, shift int) *node[K, V] {
	n := &node[K, V]{owner: e.owner, entries: make([]atomic.Pointer[Entry[K, V]], 1)}
	n.entries[0].Store(entry)
	if shift < bucketShift {
		n.entryMap = uint32(1) << (h >> shift & levelMask)
	}
	return n
}

// withEntry replaces the entry at position i by one of the same key.
func (e *edit[K, V]) withEntry(n *node[K, V], i int, entry *Entry[K, V]) *node[K, V] {
	if !e.owns(n) {
		n = &node[K, V]{
			owner: e.owner, entryMap: n.entryMap, childMap: n.childMap,
			entries: clone(n.entries), children: e.share(n),
		}
	}
	n.entries[i].Store(entry)
	return n
}

// withChild replaces the child at position i.
func (e *edit[K, V]) withChild(n *node[K, V], i int, child *node[K, V]) *node[K, V] {
	if !e.owns(n) {
		n = &node[K, V]{
			owner: e.owner, entryMap: n.entryMap, childMap: n.childMap,
			entries: e.shareEntries(n), children: clone(n.children),
		}
	}
	n.children[i].Store(child)
	return n
}

func (e *edit[K, V]) withoutEntry(n *node[K, V], i int, bit uint32) *node[K, V] {
	e.grown--
	if len(n.entries)+len(n.children) == 1 {
		return nil
	}
	return &node[K, V]{
		owner: e.owner, entryMap: n.entryMap &^ bit, childMap: n.childMap,
		entries: without(n.entries, i), children: e.share(n),
	}
}

// owns reports whether the slots of n may be changed.
func (e *edit[K, V]) owns(n *node[K, V]) bool { return e.owner != nil && n.owner == e.owner }

// share returns the children of n for a node that takes its place. They may be
// the same slots if both nodes are ours, n being garbage then, or if neither is
// ever changed.
func (e *edit[K, V]) share(n *node[K, V]) []atomic.Pointer[node[K, V]] {
	if n.owner == e.owner {
		return n.children
	}
	return clone(n.children)
}

// shareEntries is share for the entries.
func (e *edit[K, V]) shareEntries(n *node[K, V]) []atomic.Pointer[Entry[K, V]] {
	if n.owner == e.owner {
		return n.entries
	}
	return clone(n.entries)
}

// clone, insert and without return new slots. Only the one writer calls them, so
// the slots that they copy do not change.
func clone[T any](slots []atomic.Pointer[T]) []atomic.Pointer[T] {
	if len(slots) == 0 {
		return nil
	}
	out := make([]atomic.Pointer[T], len(slots))
	copy(out, slots)
	return out
}

func insert[T any](slots []atomic.Pointer[T], i int, v *T) []atomic.Pointer[T] {
	out := make([]atomic.Pointer[T], len(slots)+1)
	copy(out, slots[:i])
	out[i].Store(v)
	copy(out[i+1:], slots[i:])
	return out
}

func without[T any](slots []atomic.Pointer[T], i int) []atomic.Pointer[T] {
	if len(slots) == 1 {
		return nil
	}
	out := make([]atomic.Pointer[T], len(slots)-1)
	copy(out, slots[:i])
	copy(out[i:], slots[i+1:])
	return out
}
