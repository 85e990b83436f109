// SPDX-License-Identifier: Apache-2.0

// Package index has the reverse index: who has a name, and sorted lists of names that change by
// a few. Its values are guarded by whoever has them.
package index

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Index says who has a name of a type, and who has all of them. It holds names that somebody has,
// and nothing of the others, so that a change that nobody has costs a look-up. The zero value
// is empty.
type Index[H comparable] struct {
	types map[string]*Type[H] // none is empty
	names int
}

// Type is the index of one type. A nil one is empty.
type Type[H comparable] struct {
	topics    map[string]*Topic[H]
	wildcards []H
}

// Topic is a name that somebody has.
type Topic[H comparable] struct {
	Name string
	// hash is that of Name.
	hash    uint64
	holders []H
	// pins is how many are about to use it: it stays without a holder.
	pins int
}

// Of returns the index of a type, to be read.
func (x *Index[H]) Of(typeURL string) *Type[H] { return x.types[typeURL] }

// Len returns how many names there are, of all types.
func (x *Index[H]) Len() int { return x.names }

// Change changes the index of a type. One that has nothing is forgotten: clients name the types.
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

// Count returns what there is of each kind.
func (x *Index[H]) Count() (types, topics, wildcards int) {
	for _, t := range x.types {
		topics += len(t.topics)
		wildcards += len(t.wildcards)
	}
	return len(x.types), topics, wildcards
}

// Find returns the topic of a name; nil: nobody has it.
func (t *Type[H]) Find(name string) *Topic[H] {
	if t == nil {
		return nil
	}
	return t.topics[name]
}

// Having returns who has a name, not to be modified.
func (t *Type[H]) Having(name string) []H {
	if p := t.Find(name); p != nil {
		return p.holders
	}
	return nil
}

// HavingAll returns who has all names, not to be modified.
func (t *Type[H]) HavingAll() []H {
	if t == nil {
		return nil
	}
	return t.wildcards
}

// AddToAll and RemoveFromAll say who has all names.
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

// Unpin lets topics go that nobody has.
func (t *Type[H]) Unpin(topics []*Topic[H]) {
	for _, p := range topics {
		p.pins--
		t.discard(p)
	}
}

// Add says that somebody has topics, which are pinned or had by others.
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

// discard forgets a topic that has no holder and is not about to have one.
func (t *Type[H]) discard(p *Topic[H]) {
	if len(p.holders) == 0 && p.pins == 0 {
		delete(t.topics, p.Name)
	}
}

// Removed returns a list, whose order does not matter, without an element.
func Removed[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		last := len(list) - 1
		list[i] = list[last]
		clear(list[last:])
		list = list[:last]
	}
	return list
}
