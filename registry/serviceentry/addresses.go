// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"hash/maphash"
	"math/bits"

	"go.uber.org/atomic"
)

// addressTable finds the first member at an address. It keeps pointers alone and
// reads the addresses through them: about 25 B for each, where an entry of a
// pmap.Live takes 75 B, and a change allocates nothing, where that one copies a
// node. There may be a million of them.
//
// It is a hash table with linear probing. Readers take no lock; only batches write.
// A value is visible once its hash is. What a reader misses because it moves at that
// moment is in a step that is linked before (see state). Growing makes new slots;
// a reader of the old ones sees what was there when they were replaced.
type addressTable struct {
	seed  maphash.Seed
	slots atomic.Pointer[addressSlots]
	// live slots have a member; used ones had one since the table has grown.
	live, used int
}

type addressSlots struct {
	hashes  []atomic.Uint32
	members []atomic.Pointer[member]
}

// The hashes of slots without a member; those of addresses are higher.
const (
	slotFree    = 0
	slotDeleted = 1
	firstHash   = 2
)

func newAddressTable() *addressTable { return &addressTable{seed: maphash.MakeSeed()} }

func (t *addressTable) hash(address string) uint32 {
	return max(firstHash, uint32(maphash.String(t.seed, address)>>32)) //nolint:gosec // the high half
}

// start is the slot at which a search begins.
func (s *addressSlots) start(hash uint32) int {
	high, _ := bits.Mul64(uint64(hash)<<32, uint64(len(s.hashes)))
	return int(high) //nolint:gosec // less than the number of slots
}

// get returns the first member at an address in its usual form, or nil.
func (t *addressTable) get(address string) *member {
	s := t.slots.Load()
	if s == nil {
		return nil
	}
	_, m := s.find(address, t.hash(address))
	return m
}

// find returns the slot and the member of an address, or nil. There is always a
// free slot, at which the search ends.
func (s *addressSlots) find(address string, hash uint32) (int, *member) {
	for i := s.start(hash); ; {
		switch s.hashes[i].Load() {
		case slotFree:
			return -1, nil
		case hash:
			if m := s.members[i].Load(); m != nil && m.at(address) {
				return i, m
			}
		}
		if i++; i == len(s.hashes) {
			i = 0
		}
	}
}

// set makes a member the first one at an address.
func (t *addressTable) set(address string, m *member) {
	hash, s := t.hash(address), t.slots.Load()
	if s != nil {
		if i, old := s.find(address, hash); old != nil {
			s.members[i].Store(m)
			return
		}
	}
	// Three of four slots may be in use.
	if s == nil || (t.used+1)*4 > len(s.hashes)*3 {
		s = t.grow()
	}
	if s.insert(hash, m) == slotFree {
		t.used++
	}
	t.live++
}

// insert puts a member into the next slot that has none, and returns what its hash
// was.
func (s *addressSlots) insert(hash uint32, m *member) (had uint32) {
	i := s.start(hash)
	for had = s.hashes[i].Load(); had >= firstHash; had = s.hashes[i].Load() {
		if i++; i == len(s.hashes) {
			i = 0
		}
	}
	s.members[i].Store(m)
	s.hashes[i].Store(hash)
	return had
}

// remove removes the member at an address.
func (t *addressTable) remove(address string) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	i, m := s.find(address, t.hash(address))
	if m == nil {
		return
	}
	s.hashes[i].Store(slotDeleted)
	s.members[i].Store(nil)
	if t.live--; t.live == 0 {
		t.slots.Store(nil)
		t.used = 0
	}
}

// grow makes room for half as many more, without the deleted slots.
func (t *addressTable) grow() *addressSlots {
	n := 2*t.live + 8
	next := &addressSlots{hashes: make([]atomic.Uint32, n), members: make([]atomic.Pointer[member], n)}
	if s := t.slots.Load(); s != nil {
		for i := range s.hashes {
			if h := s.hashes[i].Load(); h >= firstHash {
				next.insert(h, s.members[i].Load())
			}
		}
	}
	t.used = t.live
	t.slots.Store(next)
	return next
}

// addresses yields each address that there is, some of them many times.
func (t *addressTable) addresses(yield func(string) bool) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	for i := range s.members {
		m := s.members[i].Load()
		if m == nil {
			continue
		}
		for _, a := range m.addresses() {
			if !yield(addressText(a)) {
				return
			}
		}
	}
}

// at reports whether a member has an address, which is in its usual form.
func (m *member) at(address string) bool {
	for _, a := range m.addresses() {
		if a == address || addressText(a) == address {
			return true
		}
	}
	return false
}
