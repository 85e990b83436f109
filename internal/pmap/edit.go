// SPDX-License-Identifier: Apache-2.0

package pmap

// edit is one change of a tree. Its methods return the node that takes the place
// of the one they were given: the same if that could be changed in place.
type edit struct {
	owner *owner
	// grown is by how many entries the tree has grown.
	grown int
}

// key is the key of the changed entry. It is not a part of edit, whose owner becomes a part of the
// tree, so that its functions are not allocated.
type key struct {
	hash uint64
	is   func(pair) bool   // reports whether an entry has the key
	of   func(pair) uint64 // returns the hash of the key of another entry
}

func keyOf[K comparable, V any](k K, h uint64, hash hasher[K]) key {
	return key{
		hash: h,
		is:   func(e pair) bool { return (*Entry[K, V])(e).Key == k },
		of:   func(e pair) uint64 { return hash.of((*Entry[K, V])(e).Key) },
	}
}

// put returns n, at a depth of shift bits, with an entry.
func (e *edit) put(k *key, n *node, made pair, shift int) *node {
	switch {
	case n == nil:
		e.grown++
		out := newNode(e.owner, bitOf(k.hash, shift), 0, 1)
		out.setEntry(0, made)
		return out
	case shift >= bucketShift:
		return e.putInBucket(k, n, made)
	}
	bit := bitOf(k.hash, shift)
	i := n.index(bit)
	switch {
	case n.childMap&bit != 0:
		child := n.child(i)
		if c := e.put(k, child, made, shift+levelBits); c != child {
			return e.withChild(n, i, c)
		}
		return n
	case n.entryMap&bit != 0:
		old := n.entry(i)
		if k.is(old) {
			return e.withEntry(n, i, made)
		}
		e.grown++
		child := e.two(old, k.of(old), made, k.hash, shift+levelBits)
		out := e.copyOf(n, n.entryMap&^bit, n.childMap|bit)
		out.setChild(i, child)
		return out
	default:
		e.grown++
		out := newNode(e.owner, n.entryMap|bit, n.childMap, len(n.slots)+1)
		copy(out.slots, n.slots[:i])
		copy(out.slots[i+1:], n.slots[i:])
		out.setEntry(i, made)
		return out
	}
}

func (e *edit) putInBucket(k *key, n *node, made pair) *node {
	if i, old := n.scan(k.is); old != nil {
		return e.withEntry(n, i, made)
	}
	e.grown++
	out := newNode(e.owner, 0, 0, len(n.slots)+1)
	copy(out.slots, n.slots)
	out.setEntry(len(n.slots), made)
	return out
}

// remove returns n, at a depth of shift bits, without the entry of the key, or nil if nothing remains.
func (e *edit) remove(k *key, n *node, shift int) *node {
	if shift >= bucketShift {
		i, old := n.scan(k.is)
		if old == nil {
			return n
		}
		return e.without(n, i, 0)
	}
	bit := bitOf(k.hash, shift)
	i := n.index(bit)
	switch {
	case n.entryMap&bit != 0:
		if !k.is(n.entry(i)) {
			return n
		}
		return e.without(n, i, bit)
	case n.childMap&bit != 0:
		child := n.child(i)
		c := e.remove(k, child, shift+levelBits)
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

// two returns a node with two entries, or the nodes that lead to one.
func (e *edit) two(a pair, ha uint64, b pair, hb uint64, shift int) *node {
	bitA, bitB := bitOf(ha, shift), bitOf(hb, shift)
	if bitA == bitB && shift < bucketShift {
		n := newNode(e.owner, 0, bitA, 1)
		n.setChild(0, e.two(a, ha, b, hb, shift+levelBits))
		return n
	}
	if bitA > bitB {
		a, b = b, a
	}
	n := newNode(e.owner, bitA|bitB, 0, 2)
	n.setEntry(0, a)
	n.setEntry(1, b)
	return n
}

// withEntry replaces the entry at position i by one of the same key.
func (e *edit) withEntry(n *node, i int, made pair) *node {
	n = e.owned(n)
	n.setEntry(i, made)
	return n
}

// withChild replaces the child at position i.
func (e *edit) withChild(n *node, i int, child *node) *node {
	n = e.owned(n)
	n.setChild(i, child)
	return n
}

// without removes the entry at position i.
func (e *edit) without(n *node, i int, bit uint64) *node {
	e.grown--
	if len(n.slots) == 1 {
		return nil
	}
	out := newNode(e.owner, n.entryMap&^bit, n.childMap, len(n.slots)-1)
	copy(out.slots, n.slots[:i])
	copy(out.slots[i:], n.slots[i+1:])
	return out
}

// owned returns n if its slots may be changed, else a copy.
func (e *edit) owned(n *node) *node {
	if e.owner != nil && n.owner == e.owner {
		return n
	}
	return e.copyOf(n, n.entryMap, n.childMap)
}

// copyOf returns a new node with the slots of n. Only the one writer calls it, so
// that they do not change meanwhile.
func (e *edit) copyOf(n *node, entryMap, childMap uint64) *node {
	out := newNode(e.owner, entryMap, childMap, len(n.slots))
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
