// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"math/bits"

	"go.uber.org/atomic"
)

const (
	// levelBits is how many bits of the hash one level consumes.
	levelBits = 5
	levelMask = 1<<levelBits - 1
	// bucketShift is the depth, in bits, at which the hash is used up but for a
	// rest. Nodes there are buckets: lists of entries without maps.
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

// node has up to 32 slots, which hold nothing, an entry or a child. Everything
// but the contents of the slots is fixed. The slots of a node without an owner,
// or whose owner has taken a snapshot since, are fixed too; the owner may replace
// an entry by one of the same key, and a child.
type node[K comparable, V any] struct {
	owner *owner
	// entryMap and childMap have a bit for each slot that holds an entry, or a
	// child. They have no bit in common.
	entryMap, childMap uint32
	entries            []atomic.Pointer[Entry[K, V]]
	children           []atomic.Pointer[node[K, V]]
}

// find returns the entry of a key whose hash is h, or nil.
func (n *node[K, V]) find(h uint64, k K) *Entry[K, V] {
	for shift := 0; n != nil; shift += levelBits {
		if shift >= bucketShift {
			_, e := n.inBucket(k)
			return e
		}
		bit := uint32(1) << (h >> shift & levelMask)
		if n.entryMap&bit != 0 {
			if e := n.entries[index(n.entryMap, bit)].Load(); e.Key == k {
				return e
			}
			return nil
		}
		if n.childMap&bit == 0 {
			return nil
		}
		n = n.children[index(n.childMap, bit)].Load()
	}
	return nil
}

// inBucket returns the position and the entry of a key in a bucket.
func (n *node[K, V]) inBucket(k K) (int, *Entry[K, V]) {
	for i := range n.entries {
		if e := n.entries[i].Load(); e.Key == k {
			return i, e
		}
	}
	return -1, nil
}

// each calls yield with every entry until it returns false.
func (n *node[K, V]) each(yield func(*Entry[K, V]) bool) bool {
	for i := range n.entries {
		if !yield(n.entries[i].Load()) {
			return false
		}
	}
	for i := range n.children {
		if !n.children[i].Load().each(yield) {
			return false
		}
	}
	return true
}

// single returns the only entry of a node that has nothing else, or nil.
func (n *node[K, V]) single() *Entry[K, V] {
	if len(n.entries) == 1 && len(n.children) == 0 {
		return n.entries[0].Load()
	}
	return nil
}

// index is the position of a slot among those in its map.
func index(slots, bit uint32) int { return bits.OnesCount32(slots & (bit - 1)) }
