// SPDX-License-Identifier: Apache-2.0

// Package index has the reverse index from a name to its holders, such as selections, and
// operations on sorted lists of names that cost little if few names change. The owner of a value
// guards it.
package index

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Index finds the holders of a name of a type, and the holders of all names. It has only names with
// a holder, so that a change of any other name costs a look-up. The zero value is empty.
type Index[H comparable] struct {
	types map[string]*Type[H] // without empty types
	names int
}

// Type is the index of one type. A nil Type is empty.
type Type[H comparable] struct {
	topics    map[string]*Topic[H]
	wildcards []H
}

// Topic is a name in the index.
type Topic[H comparable] struct {
	Name string
	// hash is the hash of Name.
	hash    uint64
	holders []H
	// pins counts the callers that are about to use the topic, which stays without a holder until
	// then.
	pins int
}

// Of returns the index of a type, for reading.
func (x *Index[H]) Of(typeURL string) *Type[H] { return x.types[typeURL] }

// Len returns the number of names, of all types.
func (x *Index[H]) Len() int { return x.names }

// Change changes the index of a type. An empty type is deleted, because clients choose the types.
func (x *Index[H]) Change(typeURL string, change func(t *Type[H])) {
	t := x.types[typeURL]
	if t == nil {
		t = &Type[H]{topics: make(map[string]*Topic[H])}
		if x.types == nil {
			x.types = make(map[string]*Type[H])
		}
		x.types[typeURL] = t
	}
	before := len(t.topics)
	change(t)
	x.names += len(t.topics) - before
	if len(t.topics) == 0 && len(t.wildcards) == 0 {
		delete(x.types, typeURL)
	}
}

// Count returns the numbers of types, topics and wildcards.
func (x *Index[H]) Count() (types, topics, wildcards int) {
	for _, t := range x.types {
		topics += len(t.topics)
		wildcards += len(t.wildcards)
	}
	return len(x.types), topics, wildcards
}

// Find returns the topic of a name, or nil if it has no holder.
func (t *Type[H]) Find(name string) *Topic[H] {
	if t == nil {
		return nil
	}
	return t.topics[name]
}

// Having returns the holders of a name; the list must not be modified.
func (t *Type[H]) Having(name string) []H {
	if p := t.Find(name); p != nil {
		return p.holders
	}
	return nil
}

// HavingAll returns the holders of all names; the list must not be modified.
func (t *Type[H]) HavingAll() []H {
	if t == nil {
		return nil
	}
	return t.wildcards
}

// AddToAll adds a holder of all names.
func (t *Type[H]) AddToAll(h H) { t.wildcards = append(t.wildcards, h) }

// RemoveFromAll is the opposite of AddToAll.
func (t *Type[H]) RemoveFromAll(h H) { t.wildcards = Removed(t.wildcards, h) }

// Pin returns the topic of a name, which stays until Unpin is called.
func (t *Type[H]) Pin(name string) *Topic[H] {
	p := t.topics[name]
	if p == nil {
		p = &Topic[H]{Name: name, hash: xxhash.Sum64String(name)}
		t.topics[name] = p
	}
	p.pins++
	return p
}

// Unpin ends pins, and deletes topics without holder.
func (t *Type[H]) Unpin(topics []*Topic[H]) {
	for _, p := range topics {
		p.pins--
		t.discard(p)
	}
}

// Add adds a holder to topics, which are pinned or have other holders.
func Add[H comparable](h H, topics []*Topic[H]) {
	for _, p := range topics {
		p.holders = append(p.holders, h)
	}
}

// Remove is the opposite of Add.
func (t *Type[H]) Remove(h H, topics []*Topic[H]) {
	for _, p := range topics {
		p.holders = Removed(p.holders, h)
		t.discard(p)
	}
}

// discard deletes a topic without holder and pin.
func (t *Type[H]) discard(p *Topic[H]) {
	if len(p.holders) == 0 && p.pins == 0 {
		delete(t.topics, p.Name)
	}
}

// Removed returns a list without an element. It does not keep the order.
func Removed[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		last := len(list) - 1
		list[i] = list[last]
		clear(list[last:])
		list = list[:last]
	}
	return list
}
