// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"math/bits"
	"unsafe"

	"go.uber.org/atomic"
)

const (
	// levelBits is how many bits of the hash one level consumes.
	levelBits = 6
	levelMask = 1<<levelBits - 1
	// bucketShift is the depth, in bits, where too few bits of the hash remain for another level.
	// Nodes at this depth are buckets: lists of entries without maps.
	bucketShift = 60
)

// Entry is a key with its value. An entry in a map is never changed.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// owner is the identity of a writer between two snapshots. It has a size so that
// every owner has an address of its own.
type owner struct{ _ byte }

// slot holds an *Entry or a *node; which, the maps of its node say. One type for
// both lets a node and its slots be one allocation.
type slot = atomic.UnsafePointer

// pair is an *Entry[K, V]. The tree does not know the types of keys and values, because each
// package that can reach a generic type compiles all of its methods again, for each pair of types.
type pair = unsafe.Pointer

// node has up to 64 slots in use. Everything but the contents of the slots is
// fixed. The slots of a node without an owner, or whose owner has taken a snapshot
// since, are fixed too; the owner may replace an entry by one of the same key, and
// a child.
type node struct {
	owner *owner
	// entryMap and childMap have a bit for each slot that holds an entry, or a
	// child. They have no bit in common. In a bucket both are empty.
	entryMap, childMap uint64
	// slots are those in use, in the order of their bits.
	slots []slot
}

// find returns the entry of a key whose hash is h, or nil.
func find[K comparable, V any](n *node, h uint64, k K) *Entry[K, V] {
	for shift := 0; shift < bucketShift; shift += levelBits {
		bit := uint64(1) << (h & levelMask)
		h >>= levelBits
		if n.entryMap&bit != 0 {
			if e := (*Entry[K, V])(n.entry(n.index(bit))); e.Key == k {
				return e
			}
			return nil
		}
		if n.childMap&bit == 0 {
			return nil
		}
		n = n.child(n.index(bit))
	}
	for i := range n.slots {
		if e := (*Entry[K, V])(n.entry(i)); e.Key == k {
			return e
		}
	}
	return nil
}

// each calls yield with every entry until it returns false.
func (n *node) each(yield func(pair) bool) bool {
	if n.isBucket() {
		for i := range n.slots {
			if !yield(n.entry(i)) {
				return false
			}
		}
		return true
	}
	i := 0
	for used := n.entryMap | n.childMap; used != 0; used &= used - 1 {
		if n.childMap&used&-used != 0 {
			if !n.child(i).each(yield) {
				return false
			}
		} else if !yield(n.entry(i)) {
			return false
		}
		i++
	}
	return true
}

// scan returns an entry, without its hash, and its position if n is a bucket; or nil.
func (n *node) scan(is func(pair) bool) (position int, found pair) {
	n.each(func(e pair) bool {
		if is(e) {
			found = e
			return false
		}
		position++
		return true
	})
	return position, found
}

// single returns the only entry of a node without children, or nil.
func (n *node) single() pair {
	if len(n.slots) == 1 && n.childMap == 0 {
		return n.entry(0)
	}
	return nil
}

func (n *node) isBucket() bool { return n.entryMap|n.childMap == 0 }

// index is the position of a bit's slot.
func (n *node) index(bit uint64) int {
	return bits.OnesCount64((n.entryMap | n.childMap) & (bit - 1))
}

func (n *node) entry(i int) pair { return n.slots[i].Load() }

func (n *node) child(i int) *node { return (*node)(n.slots[i].Load()) }

func (n *node) setEntry(i int, e pair) { n.slots[i].Store(e) }

func (n *node) setChild(i int, c *node) { n.slots[i].Store(unsafe.Pointer(c)) }

// newNode returns a node with size empty slots, in one allocation; the sizes fill
// the allocator's size classes.
func newNode(o *owner, entryMap, childMap uint64, size int) *node {
	var n *node
	switch {
	case size <= 2:
		n = nodeWith[[2]slot](size)
	case size <= 4:
		n = nodeWith[[4]slot](size)
	case size <= 8:
		n = nodeWith[[8]slot](size)
	case size <= 16:
		n = nodeWith[[16]slot](size)
	case size <= 26:
		n = nodeWith[[26]slot](size)
	case size <= 42:
		n = nodeWith[[42]slot](size)
	case size <= 64:
		n = nodeWith[[64]slot](size)
	default: // a bucket
		n = &node{slots: make([]slot, size)}
	}
	n.owner, n.entryMap, n.childMap = o, entryMap, childMap
	return n
}

// nodeWith returns a node with slots in an array of the type A, which is behind it.
func nodeWith[A any](size int) *node {
	x := new(struct {
		node
		slots A
	})
	x.node.slots = unsafe.Slice((*slot)(unsafe.Pointer(&x.slots)), size)
	return &x.node
}
