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
	table map[uint64][]*interned
}

type interned struct {
	attributes registry.EndpointAttributes
	users      int
}

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), table: map[uint64][]*interned{}}
}

// acquire returns the copy of attributes and counts one more user.
func (n *interner) acquire(a registry.EndpointAttributes) *registry.EndpointAttributes {
	h := n.hash(&a)
	for _, e := range n.table[h] {
		if e.attributes.Equal(&a) {
			e.users++
			return &e.attributes
		}
	}
	e := &interned{attributes: a, users: 1}
	n.table[h] = append(n.table[h], e)
	return &e.attributes
}

// release is told that a user of what acquire returned is gone.
func (n *interner) release(a *registry.EndpointAttributes) {
	h := n.hash(a)
	bucket := n.table[h]
	for i, e := range bucket {
		if &e.attributes != a {
			continue
		}
		if e.users--; e.users > 0 {
			return
		}
		if len(bucket) == 1 {
			delete(n.table, h)
			return
		}
		bucket[i] = bucket[len(bucket)-1]
		bucket[len(bucket)-1] = nil
		n.table[h] = bucket[:len(bucket)-1]
		return
	}
}

// hash covers what usually differs.
func (n *interner) hash(a *registry.EndpointAttributes) uint64 {
	var labels uint64
	for k, v := range a.Labels {
		// The order of the labels does not matter, so their hashes are added.
		labels += maphash.Comparable(n.seed, [2]string{k, v})
	}
	type identity struct {
		labels                                      uint64
		account, network, locality, namespace, mode string
		weight                                      uint32
	}
	return maphash.Comparable(n.seed, identity{
		labels, a.ServiceAccount, a.Network, a.Locality, a.Namespace, a.TLSMode, a.LbWeight,
	})
}
