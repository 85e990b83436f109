// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"hash/maphash"
	"math/bits"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// table finds objects by key. It keeps pointers alone and reads the keys through
// them, which is what makes a merged view cheap: 11 bytes a slot, where an entry of
// a pmap.Live takes about 75. Readers take no lock; there may be one writer
// at a time.
type table struct {
	seed  maphash.Seed
	slots atomic.Pointer[slots]
	// live slots have an object; used ones had one since the last rehash.
	live, used int
}

// slots are divided into groups of eight. A group's tags are the bytes of one
// word, so that a search looks at objects whose tag fits only.
type slots struct {
	tags    []atomic.Uint64
	configs []atomic.Pointer[configstore.Config]
	// owners are the members that the objects come from; only the writer reads
	// them.
	owners []uint16
}

// The tags of slots without an object. A search ends at a group with a free slot.
const (
	free    = 0
	deleted = 1
	// firstTag is the lowest tag of an object.
	firstTag = 2
)

const (
	groupSize = 8
	ones      = 0x0101010101010101
	highs     = 0x8080808080808080
)

func newTable() *table { return &table{seed: maphash.MakeSeed()} }

func (t *table) hash(k listing.Key) uint64 {
	return maphash.String(t.seed, k.Name) ^ bits.RotateLeft64(maphash.String(t.seed, k.Namespace), 31)
}

// tagOf uses the low bits of a hash, group the high ones.
func tagOf(hash uint64) uint64 { return firstTag + hash%(256-firstTag) }

func (s *slots) group(hash uint64) int {
	group, _ := bits.Mul64(hash, uint64(len(s.tags)))
	return int(group)
}

// matches returns a word whose bytes have the high bit set where tags has the
// tag, and possibly in bytes above such a one.
func matches(tags, tag uint64) uint64 {
	x := tags ^ tag*ones
	return (x - ones) &^ x & highs
}

// get returns an object, or nil.
func (t *table) get(k listing.Key) *configstore.Config {
	s := t.slots.Load()
	if s == nil {
		return nil
	}
	_, c := s.find(k, t.hash(k))
	return c
}

// find returns the slot of an object and the object, or nil.
func (s *slots) find(k listing.Key, hash uint64) (int, *configstore.Config) {
	tag, group := tagOf(hash), s.group(hash)
	for range s.tags {
		tags := s.tags[group].Load()
		for m := matches(tags, tag); m != 0; m &= m - 1 {
			i := group*groupSize + bits.TrailingZeros64(m)/8
			if c := s.configs[i].Load(); c != nil && c.Name == k.Name && c.Namespace == k.Namespace {
				return i, c
			}
		}
		if matches(tags, free) != 0 {
			break
		}
		if group++; group == len(s.tags) {
			group = 0
		}
	}
	return -1, nil
}

// owned returns an object and the member that it comes from, or nil.
func (t *table) owned(k listing.Key) (*configstore.Config, int) {
	s := t.slots.Load()
	if s == nil {
		return nil, 0
	}
	i, c := s.find(k, t.hash(k))
	if c == nil {
		return nil, 0
	}
	return c, int(s.owners[i])
}

// set adds an object or replaces the one of the same key.
func (t *table) set(c *configstore.Config, owner int) {
	hash := t.hash(listing.KeyOf(c))
	s := t.slots.Load()
	if s != nil {
		if i, old := s.find(listing.KeyOf(c), hash); old != nil {
			s.configs[i].Store(c)
			s.owners[i] = uint16(owner)
			return
		}
	}
	// Seven of eight slots may be in use.
	if s == nil || (t.used+1)*8 > len(s.configs)*7 {
		s = t.rehash()
	}
	if s.insert(c, hash, owner) == free {
		t.used++
	}
	t.live++
}

// insert puts an object into the first slot that has none, and returns the tag
// that the slot had. The object is visible once its tag is.
func (s *slots) insert(c *configstore.Config, hash uint64, owner int) uint64 {
	for group := s.group(hash); ; group = (group + 1) % len(s.tags) {
		tags := s.tags[group].Load()
		for i := range groupSize {
			had := tags >> (8 * i) & 0xff
			if had >= firstTag {
				continue
			}
			s.configs[group*groupSize+i].Store(c)
			s.owners[group*groupSize+i] = uint16(owner)
			s.tags[group].Store(tags&^(0xff<<(8*i)) | tagOf(hash)<<(8*i))
			return had
		}
	}
}

// remove removes an object.
func (t *table) remove(k listing.Key) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	i, c := s.find(k, t.hash(k))
	if c == nil {
		return
	}
	shift := 8 * (i % groupSize)
	s.tags[i/groupSize].Store(s.tags[i/groupSize].Load()&^(0xff<<shift) | deleted<<shift)
	s.configs[i].Store(nil)
	t.live--
	if t.live == 0 {
		t.slots.Store(nil)
		t.used = 0
	}
}

// rehash makes room for growth by half, without the deleted slots.
func (t *table) rehash() *slots {
	groups := (t.live*14/8+groupSize)/groupSize + 1
	next := &slots{
		tags:    make([]atomic.Uint64, groups),
		configs: make([]atomic.Pointer[configstore.Config], groups*groupSize),
		owners:  make([]uint16, groups*groupSize),
	}
	t.each(func(c *configstore.Config, owner int) bool {
		next.insert(c, t.hash(listing.KeyOf(c)), owner)
		return true
	})
	t.used = t.live
	t.slots.Store(next)
	return next
}

// each calls yield with every object until it returns false.
func (t *table) each(yield func(c *configstore.Config, owner int) bool) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	for i := range s.configs {
		if c := s.configs[i].Load(); c != nil && !yield(c, int(s.owners[i])) {
			return
		}
	}
}
