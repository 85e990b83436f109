// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"hash/maphash"

	"github.com/pilotkit/pilotkit/registry"
)

// interner keeps one copy of equal endpoint attributes and counts its users.
// What nobody uses is forgotten, so the table never holds more than the registry
// does; whoever was given a copy before may keep it.
type interner struct {
	seed  maphash.Seed
	table map[uint64]*interned
	// copies finds what belongs to a copy.
	copies map[*registry.EndpointAttributes]*interned
}

// interned is one copy. Two of one interner are equal only if they are the same.
type interned struct {
	registry.EndpointAttributes
	// labelsHash depends on the labels alone, hash on everything.
	labelsHash, hash uint64
	users            int
	// next has the same hash.
	next *interned
}

func newInterner() *interner {
	return &interner{
		seed: maphash.MakeSeed(), table: map[uint64]*interned{},
		copies: map[*registry.EndpointAttributes]*interned{},
	}
}

// acquire returns the copy of what is drafted, and counts one more user. Nothing
// is built that there is already.
func (n *interner) acquire(d *draft) *interned {
	labels := d.hashLabels(n.seed)
	h := n.hash(d, labels)
	for e := n.table[h]; e != nil; e = e.next {
		if d.matches(&e.EndpointAttributes) {
			e.users++
			return e
		}
	}
	e := &interned{EndpointAttributes: d.build(), labelsHash: labels, hash: h, users: 1, next: n.table[h]}
	n.table[h], n.copies[&e.EndpointAttributes] = e, e
	return e
}

// release is told that a user of what acquire returned is gone.
func (n *interner) release(a *registry.EndpointAttributes) {
	e := n.copies[a]
	if e.users--; e.users > 0 {
		return
	}
	delete(n.copies, a)
	if n.table[e.hash] == e {
		if e.next == nil {
			delete(n.table, e.hash)
		} else {
			n.table[e.hash] = e.next
		}
		return
	}
	for f := n.table[e.hash]; f != nil; f = f.next {
		if f.next == e {
			f.next = e.next
			return
		}
	}
}

// hash covers what usually differs.
func (n *interner) hash(d *draft, labels uint64) uint64 {
	type key struct {
		labels                                      uint64
		identity                                    spiffe
		account, network, locality, namespace, mode string
		weight                                      uint32
	}
	return maphash.Comparable(n.seed, key{
		labels, d.identity, d.ServiceAccount, d.Network, d.Locality, d.Namespace, d.TLSMode, d.LbWeight,
	})
}
