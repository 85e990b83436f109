// SPDX-License-Identifier: Apache-2.0

// Package index has the reverse index from a name to its holders, such as selections, and
// operations on sorted lists of names that cost little if few names change. The owner of a value
// guards it.
package index

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Index finds the holders of a name of a type, and the holders of all names. It has only names with
// a holder, so that a change of any other name costs a look-up. The zero value is empty.
type Index[H comparable] struct {
	types map[string]*Type[H] // without empty types
	names int
}

// Type is the index of one type.
type Type[H comparable] struct {
	topics map[string]*Topic[H]
	// wildcards are the holders of all names, by their groups, which are not empty.
	wildcards map[string][]H
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
func (x *Index[H]) Of(typeURL string) *Type[H] {
	if t := x.types[typeURL]; t != nil {
		return t
	}
	return &Type[H]{}
}

// Len returns the number of names, of all types.
func (x *Index[H]) Len() int { return x.names }

// Change changes the index of a type. An empty type is deleted, because clients choose the types.
func (x *Index[H]) Change(typeURL string, change func(t *Type[H])) {
	t := x.types[typeURL]
	if t == nil {
		t = &Type[H]{topics: make(map[string]*Topic[H]), wildcards: make(map[string][]H)}
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

// Types returns the number of types that have holders.
func (x *Index[H]) Types() int { return len(x.types) }

// Find returns the topic of a name, or nil if it has no holder.
func (t *Type[H]) Find(name string) *Topic[H] { return t.topics[name] }

// Having returns the holders of a name; the list must not be modified.
func (t *Type[H]) Having(name string) []H {
	if p := t.Find(name); p != nil {
		return p.holders
	}
	return nil
}

// HavingAll returns the holders of all names, by group; the result must not be modified.
func (t *Type[H]) HavingAll() map[string][]H { return t.wildcards }

// AddToAll adds a holder of all names to a group.
func (t *Type[H]) AddToAll(h H, group string) { t.wildcards[group] = append(t.wildcards[group], h) }

// RemoveFromAll is the opposite of AddToAll.
func (t *Type[H]) RemoveFromAll(h H, group string) {
	if t.wildcards[group] = Removed(t.wildcards[group], h); len(t.wildcards[group]) == 0 {
		delete(t.wildcards, group)
	}
}

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

// The functions below take sorted topics without repetitions, and return such. Mostly one list is
// long and the other short, or both are nearly equal: the topics of the short list are searched in
// the long one, and equal topics are recognized without comparing names. A result may be one of the
// arguments.

// Union returns the topics that are in a or b.
func Union[H comparable](a, b []*Topic[H]) []*Topic[H] {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) == 0 {
		return a
	}
	out := make([]*Topic[H], 0, len(a)+len(b))
	for _, p := range b {
		before, _, after := cut(a, p)
		out, a = append(append(out, before...), p), after
	}
	return append(out, a...)
}

// Without returns the topics of a that are not in b.
func Without[H comparable](a, b []*Topic[H]) []*Topic[H] {
	if len(b) == 0 {
		return a
	}
	var out []*Topic[H]
	rest := a
	for _, p := range b {
		before, _, after := cut(rest, p)
		out, rest = append(out, before...), after
	}
	if out = append(out, rest...); len(out) == len(a) {
		return a
	}
	return out
}

// Intersection returns the topics that are in a and in b.
func Intersection[H comparable](a, b []*Topic[H]) []*Topic[H] {
	if len(a) > len(b) {
		a, b = b, a
	}
	var out []*Topic[H]
	for _, p := range a {
		_, found, after := cut(b, p)
		if b = after; found {
			out = append(out, p)
		}
	}
	return out
}

// cut returns the topics before and after a topic, and whether it is in the list. It searches near
// the beginning first.
func cut[H comparable](list []*Topic[H], p *Topic[H]) (before []*Topic[H], found bool, after []*Topic[H]) {
	if len(list) > 0 && list[0] == p {
		return nil, true, list[1:]
	}
	end := 1
	for end < len(list) && list[end].Name < p.Name {
		end *= 2
	}
	from := end / 2 // all topics before it are less
	i, found := slices.BinarySearchFunc(list[from:min(end+1, len(list))], p, byName[H])
	if i += from; found {
		return list[:i], true, list[i+1:]
	}
	return list[:i], false, list[i:]
}

// Sum returns the sum of the hashes of names.
func Sum[H comparable](topics []*Topic[H]) uint64 {
	var sum uint64
	for _, t := range topics {
		sum += t.hash
	}
	return sum
}

// Sorted sorts the topics of names and drops duplicates.
func Sorted[H comparable](topics []*Topic[H]) []*Topic[H] {
	if !slices.IsSortedFunc(topics, byName[H]) {
		slices.SortFunc(topics, byName[H])
	}
	return slices.Compact(topics)
}

func byName[H comparable](a, b *Topic[H]) int { return strings.Compare(a.Name, b.Name) }

// Names returns the names of topics.
func Names[H comparable](topics []*Topic[H]) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = t.Name
	}
	return out
}
