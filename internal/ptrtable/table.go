// SPDX-License-Identifier: Apache-2.0

package ptrtable

import (
	"hash/maphash"
	"math"
	"math/bits"

	"go.uber.org/atomic"
)

// Table finds objects by key. An object may be in it under several keys. Create it with
// New.
//
// It is a hash table with linear probing.
type Table[K comparable, V any] struct {
	has func(*V, uint16, K) bool
	key func(*V, uint16) K

	seed  maphash.Seed
	slots atomic.Pointer[slots[V]]
	// live slots have an object; used ones had one since the table has grown.
	live, used int
}

// slots are pairs of an object and a word. An object is visible once its word is.
type slots[V any] struct {
	// pairs are the words of two slots each. A word has low bits of the hash of the key
	// above the note.
	pairs   []atomic.Uint64
	objects []atomic.Pointer[V]
}

const (
	// free marks a slot that was never used. It ends a search.
	free = 0
	// deleted is that of a slot whose object was deleted.
	deleted = 1 << noteBits
	// firstTag is the lowest hash of an object.
	firstTag = 2
	noteBits = 16
)

// New returns an empty table. key returns that key of an object under which it was set
// with a note. has reports whether this is a given key; a reader may call it with the
// note of another object.
func New[K comparable, V any](has func(v *V, note uint16, k K) bool, key func(v *V, note uint16) K) *Table[K, V] {
	return &Table[K, V]{has: has, key: key, seed: maphash.MakeSeed()}
}

// Len returns the number of keys.
func (t *Table[K, V]) Len() int { return t.live }

// Get returns the object of a key, and the note of it; nil if there is none.
func (t *Table[K, V]) Get(k K) (v *V, note uint16) {
	s := t.slots.Load()
	if s == nil {
		return nil, 0
	}
	_, v, note = t.find(s, k, t.hash(k))
	return v, note
}

// Set stores the object of a key. note selects one of the object's keys if it has several;
// otherwise it may be any value.
func (t *Table[K, V]) Set(k K, v *V, note uint16) {
	hash, s := t.hash(k), t.slots.Load()
	if s != nil {
		if i, old, _ := t.find(s, k, hash); old != nil {
			s.objects[i].Store(v)
			s.setWord(i, wordOf(hash, note))
			return
		}
	}
	// Seven of eight slots may be in use.
	if s == nil || (t.used+1)*8 > len(s.objects)*7 {
		s = t.grow(s)
	}
	if s.insert(v, hash, note) == free {
		t.used++
	}
	t.live++
}

// Delete removes a key, if it is there.
func (t *Table[K, V]) Delete(k K) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	i, v, _ := t.find(s, k, t.hash(k))
	if v == nil {
		return
	}
	if t.live--; t.live == 0 {
		t.slots.Store(nil)
		t.used = 0
		return
	}
	s.setWord(i, deleted)
	s.objects[i].Store(nil)
}

// Each calls yield with the object and the note of every key, in no order, until it
// returns false.
func (t *Table[K, V]) Each(yield func(v *V, note uint16) bool) {
	if s := t.slots.Load(); s != nil {
		s.each(yield)
	}
}

func (s *slots[V]) each(yield func(v *V, note uint16) bool) {
	for i := range s.objects {
		w := s.word(i)
		if v := s.objects[i].Load(); v != nil && !yield(v, noteOf(w)) {
			return
		}
	}
}

// find returns the slot of a key, its object (nil if absent) and its note. There is always a free
// slot to end the search.
func (t *Table[K, V]) find(s *slots[V], k K, hash uint64) (slot int, v *V, note uint16) {
	tag := tagOf(hash)
	for i := s.start(hash); ; i = s.after(i) {
		w := s.word(i)
		if w == free {
			return -1, nil, 0
		}
		if w>>noteBits != tag {
			continue
		}
		if v := s.objects[i].Load(); v != nil && t.has(v, noteOf(w), k) {
			return i, v, noteOf(w)
		}
	}
}

// insert puts an object into the next slot that has none, and returns what its word was.
func (s *slots[V]) insert(v *V, hash uint64, note uint16) (had uint32) {
	i := s.start(hash)
	for had = s.word(i); had>>noteBits >= firstTag; had = s.word(i) {
		i = s.after(i)
	}
	s.objects[i].Store(v)
	s.setWord(i, wordOf(hash, note))
	return had
}

// grow makes room for a third more, without the deleted slots.
func (t *Table[K, V]) grow(old *slots[V]) *slots[V] {
	n := t.live*3/2 + 8
	next := &slots[V]{pairs: make([]atomic.Uint64, (n+1)/2), objects: make([]atomic.Pointer[V], n)}
	if old != nil {
		old.each(func(v *V, note uint16) bool {
			next.insert(v, t.hash(t.key(v, note)), note)
			return true
		})
	}
	t.used = t.live
	t.slots.Store(next)
	return next
}

func (s *slots[V]) word(i int) uint32 { return uint32(s.pairs[i/2].Load() >> (i % 2 * 32)) }

func (s *slots[V]) setWord(i int, word uint32) {
	pair, shift := &s.pairs[i/2], i%2*32
	pair.Store(pair.Load()&^(math.MaxUint32<<shift) | uint64(word)<<shift)
}

// start is the first slot of a search. It uses the high bits of a hash, tagOf the low ones.
func (s *slots[V]) start(hash uint64) int {
	high, _ := bits.Mul64(hash, uint64(len(s.objects)))
	return int(high) //nolint:gosec // less than the number of slots
}

func (s *slots[V]) after(i int) int {
	if i++; i == len(s.objects) {
		return 0
	}
	return i
}

func (t *Table[K, V]) hash(k K) uint64 { return maphash.Comparable(t.seed, k) }

func tagOf(hash uint64) uint32 { return max(firstTag, uint32(hash)>>noteBits) }

func wordOf(hash uint64, note uint16) uint32 { return tagOf(hash)<<noteBits | uint32(note) }

func noteOf(word uint32) uint16 { return uint16(word) }
