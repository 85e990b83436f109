// SPDX-License-Identifier: Apache-2.0

package pmap

import "go.uber.org/atomic"

// Live is a map that changes in place. It serves lock-free readers, and as a builder of Maps: nodes
// that no snapshot shares are changed without copying. The zero value is empty. It must not be
// copied.
type Live[K comparable, V any] struct {
	hash  hasher[K]
	root  atomic.Pointer[node]
	len   atomic.Int64
	owner *owner
}

// Live returns a map that starts with the contents of m. It costs O(1); changes
// copy each node of m once.
func (m Map[K, V]) Live() *Live[K, V] {
	l := &Live[K, V]{hash: m.hash}
	if m.root != nil {
		l.root.Store(m.root)
		l.len.Store(int64(m.len))
		l.owner = new(owner)
	}
	return l
}

// Get returns the value of a key.
func (l *Live[K, V]) Get(k K) (V, bool) {
	if e := l.Entry(k); e != nil {
		return e.Value, true
	}
	var zero V
	return zero, false
}

// Entry returns the entry of a key, or nil: the very one that was given to Put.
func (l *Live[K, V]) Entry(k K) *Entry[K, V] {
	root := l.root.Load()
	if root == nil {
		return nil
	}
	return find[K, V](root, l.hash.of(k), k)
}

// Entries calls yield with every entry until it returns false, in an order of no
// meaning. Of an entry that changes meanwhile it sees one of its values; of
// several that change at the same time, some may be seen before and some after.
func (l *Live[K, V]) Entries(yield func(*Entry[K, V]) bool) {
	if root := l.root.Load(); root != nil {
		root.each(func(e pair) bool { return yield((*Entry[K, V])(e)) })
	}
}

// Len returns the number of entries.
func (l *Live[K, V]) Len() int { return int(l.len.Load()) }

// Set sets the value of a key.
func (l *Live[K, V]) Set(k K, v V) { l.Put(&Entry[K, V]{Key: k, Value: v}) }

// Put is Set with an entry made by the caller.
func (l *Live[K, V]) Put(made *Entry[K, V]) {
	if l.owner == nil {
		l.owner = new(owner)
	}
	e, at := edit{owner: l.owner}, keyOf[K, V](made.Key, l.hash.of(made.Key), l.hash)
	old := l.root.Load()
	l.replace(old, e.put(&at, old, pair(made), 0), e.grown)
}

// Delete removes a key, if it is there.
func (l *Live[K, V]) Delete(k K) {
	old := l.root.Load()
	if old == nil {
		return
	}
	e, at := edit{owner: l.owner}, keyOf[K, V](k, l.hash.of(k), l.hash)
	l.replace(old, e.remove(&at, old, 0), e.grown)
}

// Snapshot returns the present contents. It costs O(1); the changes that follow
// copy each node once.
func (l *Live[K, V]) Snapshot() Map[K, V] {
	root := l.root.Load()
	if root != nil {
		l.owner = new(owner)
	}
	return Map[K, V]{root: root, len: l.Len(), hash: l.hash}
}

func (l *Live[K, V]) replace(old, root *node, grown int) {
	if root != old {
		l.root.Store(root)
	}
	if grown != 0 {
		l.len.Add(int64(grown))
	}
}
