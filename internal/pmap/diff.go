// SPDX-License-Identifier: Apache-2.0

package pmap

// Changes calls yield for every key whose entries in old and in m are not identical, in unspecified
// order, until yield returns false. A nil entry means that the key is absent. Entries that were set
// again with an equal value differ.
//
// If one map was derived from the other, their shared parts are skipped, and the cost is O(log64 n)
// for each change. Otherwise it is O(n).
func (m Map[K, V]) Changes(old Map[K, V], yield func(before, after *Entry[K, V]) bool) {
	switch {
	case old.root == nil:
		m.Entries(func(e *Entry[K, V]) bool { return yield(nil, e) })
	case m.root == nil:
		old.Entries(func(e *Entry[K, V]) bool { return yield(e, nil) })
	default:
		difference(old.root, m.root, yield)
	}
}

// difference is Changes for two nodes at one place of two trees.
func difference[K comparable, V any](a, b *node[K, V], yield func(before, after *Entry[K, V]) bool) bool {
	switch {
	case a == b:
		return true
	case a.isBucket():
		return mixed(a, b, yield)
	case a.entryMap == b.entryMap && a.childMap == b.childMap:
		return differenceOfShape(a, b, yield)
	}
	for used := a.entryMap | a.childMap | b.entryMap | b.childMap; used != 0; used &= used - 1 {
		if !differenceAt(a, b, used&-used, yield) {
			return false
		}
	}
	return true
}

// differenceOfShape is difference for nodes with entries and children in the same places, such as
// those before and after a replacement: it skips their shared parts.
func differenceOfShape[K comparable, V any](a, b *node[K, V], yield func(before, after *Entry[K, V]) bool) bool {
	for i, used := 0, a.entryMap|a.childMap; used != 0; i, used = i+1, used&(used-1) {
		if a.slots[i].Load() != b.slots[i].Load() && !differenceAt(a, b, used&-used, yield) {
			return false
		}
	}
	return true
}

// differenceAt is difference for the slots of one bit.
func differenceAt[K comparable, V any](a, b *node[K, V], bit uint64, yield func(before, after *Entry[K, V]) bool) bool {
	if a.childMap&b.childMap&bit != 0 {
		return difference(a.child(a.index(bit)), b.child(b.index(bit)), yield)
	}
	if a.entryMap&b.entryMap&bit != 0 {
		e, f := a.entry(a.index(bit)), b.entry(b.index(bit))
		switch {
		case e == f:
			return true
		case e.Key == f.Key:
			return yield(e, f)
		}
	}
	return mixed(a.only(bit), b.only(bit), yield)
}

// mixed is difference for nodes of different shapes. It looks through one node
// for each entry of the other: in a bucket there are few, and of two other nodes
// one has at most a single entry.
func mixed[K comparable, V any](a, b *node[K, V], yield func(before, after *Entry[K, V]) bool) bool {
	return a.each(func(e *Entry[K, V]) bool {
		f := b.scan(e.Key)
		return e == f || yield(e, f)
	}) && b.each(func(f *Entry[K, V]) bool { return a.scan(f.Key) != nil || yield(nil, f) })
}

// scan returns the entry of a key, or nil, without its hash.
func (n *node[K, V]) scan(k K) (found *Entry[K, V]) {
	n.each(func(e *Entry[K, V]) bool {
		if e.Key == k {
			found = e
		}
		return found == nil
	})
	return found
}

// only returns a node with what n has in the slot of one bit, which may be
// nothing.
func (n *node[K, V]) only(bit uint64) *node[K, V] {
	switch {
	case n.childMap&bit != 0:
		return n.child(n.index(bit))
	case n.entryMap&bit != 0:
		return &node[K, V]{entryMap: bit, slots: n.slots[n.index(bit) : n.index(bit)+1]}
	default:
		return &node[K, V]{}
	}
}
