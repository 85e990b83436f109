// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"hash/maphash"
	"iter"
)

// Map is an immutable map: Set and Delete return another one, which shares most
// of its memory with the first. The zero value is empty. Copying a Map is O(1).
type Map[K comparable, V any] struct {
	root *node
	len  int
	hash hasher[K]
}

// Get returns the value of a key.
func (m Map[K, V]) Get(k K) (V, bool) {
	if e := m.Entry(k); e != nil {
		return e.Value, true
	}
	var zero V
	return zero, false
}

// Entry returns the entry of a key, or nil. It is shared and read-only.
func (m Map[K, V]) Entry(k K) *Entry[K, V] {
	if m.root == nil {
		return nil
	}
	return find[K, V](m.root, m.hash.of(k), k)
}

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.len }

// All yields every key with its value, in an order of no meaning.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.Entries(func(e *Entry[K, V]) bool { return yield(e.Key, e.Value) })
	}
}

// Entries calls yield with every entry until it returns false, in an order of no
// meaning. The entries are shared and read-only.
func (m Map[K, V]) Entries(yield func(*Entry[K, V]) bool) {
	if m.root != nil {
		m.root.each(func(e pair) bool { return yield((*Entry[K, V])(e)) })
	}
}

// Set returns m with a value for a key.
func (m Map[K, V]) Set(k K, v V) Map[K, V] {
	e, at := edit{}, keyOf[K, V](k, m.hash.of(k), m.hash)
	m.root = e.put(&at, m.root, pair(&Entry[K, V]{Key: k, Value: v}), 0)
	m.len += e.grown
	return m
}

// Delete returns m without a key: m itself if it does not have it.
func (m Map[K, V]) Delete(k K) Map[K, V] {
	if m.root == nil {
		return m
	}
	e, at := edit{}, keyOf[K, V](k, m.hash.of(k), m.hash)
	m.root = e.remove(&at, m.root, 0)
	m.len += e.grown
	return m
}

// seed is shared by all maps, so that trees with the same keys have the same shape and can be
// compared node by node, regardless of their histories.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // never changed

// hasher hashes keys. The zero value is that of all maps.
type hasher[K comparable] struct {
	// test replaces the hash in tests of collisions.
	test func(K) uint64
}

func (h hasher[K]) of(k K) uint64 {
	if h.test != nil {
		return h.test(k)
	}
	return maphash.Comparable(seed, k)
}
