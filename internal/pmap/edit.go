// SPDX-License-Identifier: Apache-2.0

package pmap

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
	bit := bitOf(h, shift)
	i := n.index(bit)
	switch {
	case n.childMap&bit != 0:
		child := n.child(i)
		if c := e.put(child, entry, h, shift+levelBits); c != child {
			return e.withChild(n, i, c)
		}
		return n
	case n.entryMap&bit != 0:
		old := n.entry(i)
		if old.Key == entry.Key {
			return e.withEntry(n, i, entry)
		}
		e.grown++
		child := e.two(old, e.hash.of(old.Key), entry, h, shift+levelBits)
		out := e.copyOf(n, n.entryMap&^bit, n.childMap|bit)
		out.setChild(i, child)
		return out
	default:
		e.grown++
		out := newNode[K, V](e.owner, n.entryMap|bit, n.childMap, len(n.slots)+1)
		copy(out.slots, n.slots[:i])
		copy(out.slots[i+1:], n.slots[i:])
		out.setEntry(i, entry)
		return out
	}
}

func (e *edit[K, V]) putInBucket(n *node[K, V], entry *Entry[K, V]) *node[K, V] {
	if i, old := n.inBucket(entry.Key); old != nil {
		return e.withEntry(n, i, entry)
	}
	e.grown++
	out := newNode[K, V](e.owner, 0, 0, len(n.slots)+1)
	copy(out.slots, n.slots)
	out.setEntry(len(n.slots), entry)
	return out
}

// remove returns n without the entry of a key, or nil if nothing remains.
func (e *edit[K, V]) remove(n *node[K, V], k K, h uint64, shift int) *node[K, V] {
	if shift >= bucketShift {
		i, old := n.inBucket(k)
		if old == nil {
			return n
		}
		return e.without(n, i, 0)
	}
	bit := bitOf(h, shift)
	i := n.index(bit)
	switch {
	case n.entryMap&bit != 0:
		if n.entry(i).Key != k {
			return n
		}
		return e.without(n, i, bit)
	case n.childMap&bit != 0:
		child := n.child(i)
		c := e.remove(child, k, h, shift+levelBits)
		if c == child {
			return n
		}
		// A child has at least two entries below it, so c is not nil. If one is
		// left it moves up, so that equal contents have equal trees.
		if last := c.single(); last != nil {
			out := e.copyOf(n, n.entryMap|bit, n.childMap&^bit)
			out.setEntry(i, last)
			return out
		}
		return e.withChild(n, i, c)
	}
	return n
}

// one returns a node with one entry.
func (e *edit[K, V]) one(entry *Entry[K, V], h uint64, shift int) *node[K, V] {
	n := newNode[K, V](e.owner, bitOf(h, shift), 0, 1)
	n.setEntry(0, entry)
	return n
}

// two returns a node with two entries, or the nodes that lead to one.
func (e *edit[K, V]) two(a *Entry[K, V], ha uint64, b *Entry[K, V], hb uint64, shift int) *node[K, V] {
	bitA, bitB := bitOf(ha, shift), bitOf(hb, shift)
	if bitA == bitB && shift < bucketShift {
		n := newNode[K, V](e.owner, 0, bitA, 1)
		n.setChild(0, e.two(a, ha, b, hb, shift+levelBits))
		return n
	}
	if bitA > bitB {
		a, b = b, a
	}
	n := newNode[K, V](e.owner, bitA|bitB, 0, 2)
	n.setEntry(0, a)
	n.setEntry(1, b)
	return n
}

// withEntry replaces the entry at position i by one of the same key.
func (e *edit[K, V]) withEntry(n *node[K, V], i int, entry *Entry[K, V]) *node[K, V] {
	n = e.owned(n)
	n.setEntry(i, entry)
	return n
}

// withChild replaces the child at position i.
func (e *edit[K, V]) withChild(n *node[K, V], i int, child *node[K, V]) *node[K, V] {
	n = e.owned(n)
	n.setChild(i, child)
	return n
}

// without removes the entry at position i.
func (e *edit[K, V]) without(n *node[K, V], i int, bit uint64) *node[K, V] {
	e.grown--
	if len(n.slots) == 1 {
		return nil
	}
	out := newNode[K, V](e.owner, n.entryMap&^bit, n.childMap, len(n.slots)-1)
	copy(out.slots, n.slots[:i])
	copy(out.slots[i:], n.slots[i+1:])
	return out
}

// owned returns n if its slots may be changed, else a copy.
func (e *edit[K, V]) owned(n *node[K, V]) *node[K, V] {
	if e.owner != nil && n.owner == e.owner {
		return n
	}
	return e.copyOf(n, n.entryMap, n.childMap)
}

// copyOf returns a new node with the slots of n. Only the one writer calls it, so
// that they do not change meanwhile.
func (e *edit[K, V]) copyOf(n *node[K, V], entryMap, childMap uint64) *node[K, V] {
	out := newNode[K, V](e.owner, entryMap, childMap, len(n.slots))
	copy(out.slots, n.slots)
	return out
}

// bitOf is the bit of a hash in the maps of a node at a depth, none in a bucket.
func bitOf(h uint64, shift int) uint64 {
	if shift >= bucketShift {
		return 0
	}
	return 1 << (h >> shift & levelMask)
}
