// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"hash/maphash"

	"github.com/pilotkit/pilotkit/registry"
)

// interner keeps one copy of equal labels, and one of equal endpoint attributes,
// and counts their users. What has no user is evicted, so that the tables never hold
// more than the registry does; a reader that was given a copy before may keep it.
//
// It saves memory, as most workloads of an app are alike in everything but the
// address: the 381 B of a workload include no map of labels. It also saves time: what
// is interned is compared by pointer, so that workloads with the same labels form
// a group without comparing them, and an unchanged workload is found unchanged.
//
// Copies are looked up by a draft, which is hashed and compared in its parts and
// built only if there is no copy yet. Each table is therefore keyed by a hash, and
// what has the same hash forms a chain. Workloads use attributes directly; the
// members of entries share what their workload uses, and those that are written in
// an entry are one user each.
type interner struct {
	seed       maphash.Seed
	labels     map[uint64]*sharedLabels
	attributes map[uint64]*interned
	// copies finds what belongs to a copy.
	copies map[*registry.EndpointAttributes]*interned
}

// sharedLabels is one copy of labels. Two of one interner are equal only if they
// are the same.
type sharedLabels struct {
	labels registry.Labels
	hash   uint64
	users  int
	// next has the same hash.
	next *sharedLabels
}

// interned is one copy of attributes. Two of one interner are equal only if they
// are the same.
type interned struct {
	registry.EndpointAttributes
	labels *sharedLabels
	hash   uint64
	users  int
	// next has the same hash.
	next *interned
}

func newInterner() *interner {
	return &interner{
		seed: maphash.MakeSeed(), labels: map[uint64]*sharedLabels{}, attributes: map[uint64]*interned{},
		copies: map[*registry.EndpointAttributes]*interned{},
	}
}

// acquire returns the copy of what is drafted, and counts one more user. Nothing
// is built that there is already.
func (n *interner) acquire(d *draft) *interned {
	labels := n.findLabels(d)
	h := n.hash(d, labels.hash)
	for e := n.attributes[h]; e != nil; e = e.next {
		if e.labels == labels && d.matchesWithoutLabels(&e.EndpointAttributes) {
			e.users++
			return e
		}
	}
	labels.users++
	e := &interned{EndpointAttributes: d.build(labels.labels), labels: labels, hash: h, users: 1, next: n.attributes[h]}
	n.attributes[h], n.copies[&e.EndpointAttributes] = e, e
	return e
}

// findLabels returns the copy of the labels, which may have no user yet.
func (n *interner) findLabels(d *draft) *sharedLabels {
	h := d.hashLabels(n.seed)
	for l := n.labels[h]; l != nil; l = l.next {
		if d.matchesLabels(l.labels) {
			return l
		}
	}
	l := &sharedLabels{labels: d.buildLabels(), hash: h, next: n.labels[h]}
	n.labels[h] = l
	return l
}

// release ends one use of what acquire returned. The last one evicts the copy, and
// its labels with it if no other copy has them.
func (n *interner) release(a *registry.EndpointAttributes) {
	e := n.copies[a]
	if e.users--; e.users > 0 {
		return
	}
	delete(n.copies, a)
	unlink(n.attributes, e.hash, e, func(e *interned) **interned { return &e.next })
	if l := e.labels; l.users == 1 {
		unlink(n.labels, l.hash, l, func(l *sharedLabels) **sharedLabels { return &l.next })
	} else {
		l.users--
	}
}

// unlink takes an element out of the list that a table holds for a hash.
func unlink[T any](table map[uint64]*T, hash uint64, v *T, next func(*T) **T) {
	head := table[hash]
	for p := &head; *p != nil; p = next(*p) {
		if *p == v {
			*p = *next(v)
			break
		}
	}
	if table[hash] = head; head == nil {
		delete(table, hash)
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
