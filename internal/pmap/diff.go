// SPDX-License-Identifier: Apache-2.0

package pmap

// Changes calls yield for every key whose entries in old and in now are not identical, in unspecified
// order, until yield returns false. A nil entry means that the key is absent. Entries that were set
// again with an equal value differ.
//
// If one map was derived from the other, their shared parts are skipped, and the cost is O(log64 n)
// for each change. Otherwise it is O(n).
func Changes[K comparable, V any](old, now Map[K, V], yield func(before, after *Entry[K, V]) bool) {
	switch {
	case old.root == nil:
		now.Entries(func(e *Entry[K, V]) bool { return yield(nil, e) })
	case now.root == nil:
		old.Entries(func(e *Entry[K, V]) bool { return yield(e, nil) })
	default:
		c := comparison{same: same[K, V], yield: func(before, after pair) bool {
			return yield((*Entry[K, V])(before), (*Entry[K, V])(after))
		}}
		c.nodes(old.root, now.root)
	}
}

// comparison finds the differences of two trees.
type comparison struct {
	same  func(a, b pair) bool // reports whether two entries have the same key
	yield func(before, after pair) bool
}

// nodes compares two nodes at one place of the trees.
func (c *comparison) nodes(a, b *node) bool {
	switch {
	case a == b:
		return true
	case a.isBucket():
		return c.mixed(a, b)
	case a.entryMap == b.entryMap && a.childMap == b.childMap:
		return c.slots(a, b)
	}
	for used := a.entryMap | a.childMap | b.entryMap | b.childMap; used != 0; used &= used - 1 {
		if !c.at(a, b, used&-used) {
			return false
		}
	}
	return true
}

// slots compares nodes with entries and children in the same places, such as those before and
// after a replacement: it skips their shared parts.
func (c *comparison) slots(a, b *node) bool {
	for i, used := 0, a.entryMap|a.childMap; used != 0; i, used = i+1, used&(used-1) {
		if a.slots[i].Load() != b.slots[i].Load() && !c.at(a, b, used&-used) {
			return false
		}
	}
	return true
}

// at compares the slots of one bit.
func (c *comparison) at(a, b *node, bit uint64) bool {
	if a.childMap&b.childMap&bit != 0 {
		return c.nodes(a.child(a.index(bit)), b.child(b.index(bit)))
	}
	if a.entryMap&b.entryMap&bit != 0 {
		e, f := a.entry(a.index(bit)), b.entry(b.index(bit))
		switch {
		case e == f:
			return true
		case c.same(e, f):
			return c.yield(e, f)
		}
	}
	return c.mixed(a.only(bit), b.only(bit))
}

// mixed compares nodes of different shapes. It looks through one node for each entry of the other:
// in a bucket there are few, and of two other nodes one has at most a single entry.
func (c *comparison) mixed(a, b *node) bool {
	return a.each(func(e pair) bool {
		f := c.find(b, e)
		return e == f || c.yield(e, f)
	}) && b.each(func(f pair) bool { return c.find(a, f) != nil || c.yield(nil, f) })
}

// find returns the entry of a node with the key of e, or nil.
func (c *comparison) find(n *node, e pair) pair {
	_, found := n.scan(func(other pair) bool { return c.same(e, other) })
	return found
}

// only returns a node with what n has in the slot of one bit, which may be
// nothing.
func (n *node) only(bit uint64) *node {
	switch {
	case n.childMap&bit != 0:
		return n.child(n.index(bit))
	case n.entryMap&bit != 0:
		return &node{entryMap: bit, slots: n.slots[n.index(bit) : n.index(bit)+1]}
	default:
		return &node{}
	}
}
