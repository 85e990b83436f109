// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// index is the reverse index: which selections have a resource. It holds names
// that a client is subscribed to, and nothing of the others, so that a change
// that no client is subscribed to costs a lookup. It is guarded by the cache's mutex.
type index map[string]*typeIndex // by type URL; none is empty

// typeIndex is the index of one type.
type typeIndex struct {
	topics    map[string]*topic
	wildcards []*selection
}

// topic is a name that selections have.
type topic struct {
	name string
	// hash is that of name: selections with equal names have equal sums of it.
	hash       uint64
	selections []*selection
	// pins is how many requests are about to use it: it stays without a selection.
	pins int
}

// indexed changes the index of a type, and counts its topics. One that has nothing is
// forgotten: clients name the types.
func (c *cache) indexed(typeURL string, change func(t *typeIndex)) {
	t := c.index[typeURL]
	if t == nil {
		t = &typeIndex{topics: make(map[string]*topic)}
		c.index[typeURL] = t
	}
	before := len(t.topics)
	change(t)
	c.named += len(t.topics) - before
	if len(t.topics) == 0 && len(t.wildcards) == 0 {
		delete(c.index, typeURL)
	}
}

// pinned returns the topic of a name, which stays until it is unpinned.
func (t *typeIndex) pinned(name string) *topic {
	p := t.topics[name]
	if p == nil {
		p = &topic{name: name, hash: xxhash.Sum64String(name)}
		t.topics[name] = p
	}
	p.pins++
	return p
}

func (t *typeIndex) unpin(topics []*topic) {
	for _, p := range topics {
		p.pins--
		t.discard(p)
	}
}

func add(s *selection, topics []*topic) {
	for _, p := range topics {
		p.selections = append(p.selections, s)
	}
}

func (t *typeIndex) remove(s *selection, topics []*topic) {
	for _, p := range topics {
		p.selections = removed(p.selections, s)
		t.discard(p)
	}
}

// discard forgets a topic that has no selection and is not about to have one.
func (t *typeIndex) discard(p *topic) {
	if len(p.selections) == 0 && p.pins == 0 {
		delete(t.topics, p.name)
	}
}

// removed returns a list, whose order does not matter, without an element.
func removed[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		last := len(list) - 1
		list[i] = list[last]
		clear(list[last:])
		list = list[:last]
	}
	return list
}
