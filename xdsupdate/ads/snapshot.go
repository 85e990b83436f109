// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/internal/cow"
)

// snapshot is a set of resources of one type, sorted by name: what a selection
// has at one moment, or what a client was sent. It is immutable, and a snapshot
// shares with the one that it was made from everything that did not change: what
// thousands of clients have costs each of them one pointer.
//
// A pointer is also an identity: clients of equal snapshots that are the same
// pointer are sent the same bytes.
type snapshot struct {
	list cow.Sorted[*resource]
	// sum is the sum of the weights: the version of the set.
	sum uint64
}

// newSnapshot returns the snapshot of resources that are sorted and have
// different names. It keeps the slice.
func newSnapshot(sorted []*resource) *snapshot {
	s := &snapshot{list: cow.Adopt(sorted)}
	for _, r := range sorted {
		s.sum += r.weight()
	}
	return s
}

// weight is what a resource adds to the version of a snapshot: versions are
// those of what exists.
func (r *resource) weight() uint64 {
	if r.marker != present {
		return 0
	}
	return weight(xxhash.Sum64String(r.name), r.hash)
}

// weight mixes the hash of a name with that of the content, so that sets are equal
// if their sums are: a sum of plain hashes would not notice two contents that
// change names.
func weight(name, content uint64) uint64 { return content * (2*name + 1) }

// find returns the resource of a name, or nil.
func (s *snapshot) find(name string) *resource {
	r, _ := s.list.FindFunc(func(r *resource) int { return strings.Compare(r.name, name) })
	return r
}

// lacks returns the names of topics, which are sorted, that are not in it.
func (s *snapshot) lacks(topics []*topic) []string {
	var out []string
	if len(topics) < s.list.Len()/16 {
		for _, t := range topics {
			if s.find(t.name) == nil {
				out = append(out, t.name)
			}
		}
		return out
	}
	for r := range s.list.All() {
		for len(topics) > 0 && topics[0].name < r.name {
			out, topics = append(out, topics[0].name), topics[1:]
		}
		if len(topics) > 0 && topics[0].name == r.name {
			topics = topics[1:]
		}
	}
	return append(out, namesOf(topics)...)
}

// edit is a change of a snapshot: a new resource, or nil for none.
type edit struct {
	name     string
	resource *resource
}

// with returns a snapshot after edits, of which there is one for each name, in
// any order: s itself if they change nothing.
func (s *snapshot) with(edits []edit) *snapshot {
	if len(edits) > 64 && len(edits) > s.list.Len()/8 {
		return s.rebuilt(edits)
	}
	editor, sum, changed := s.list.Edit(len(edits)), s.sum, false
	for _, e := range edits {
		probe := e.resource
		if probe == nil {
			probe = &resource{name: e.name}
		}
		old, found := editor.Find(compareNames, probe)
		switch {
		case found && e.resource != nil:
			if old == e.resource {
				continue
			}
			sum += e.resource.weight() - old.weight()
			editor.Replace(compareNames, old, e.resource, identical)
		case found:
			sum -= old.weight()
			editor.Delete(compareNames, old, identical)
		case e.resource != nil:
			sum += e.resource.weight()
			editor.Insert(compareNames, e.resource)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return s
	}
	return &snapshot{list: editor.Sorted(), sum: sum}
}

// rebuilt is with for edits that are many: it merges two sorted lists.
func (s *snapshot) rebuilt(edits []edit) *snapshot {
	edits = slices.SortedFunc(slices.Values(edits), func(a, b edit) int { return strings.Compare(a.name, b.name) })
	out := make([]*resource, 0, s.list.Len()+len(edits))
	for r := range s.list.All() {
		for len(edits) > 0 && edits[0].name < r.name {
			if edits[0].resource != nil {
				out = append(out, edits[0].resource)
			}
			edits = edits[1:]
		}
		if len(edits) > 0 && edits[0].name == r.name {
			continue
		}
		out = append(out, r)
	}
	for _, e := range edits {
		if e.resource != nil {
			out = append(out, e.resource)
		}
	}
	return newSnapshot(out)
}

// without returns the snapshot without some names.
func (s *snapshot) without(names []string) *snapshot {
	edits := make([]edit, len(names))
	for i, name := range names {
		edits[i].name = name
	}
	return s.with(edits)
}

func identical(a, b *resource) bool { return a == b }

// compare calls visit with what differs between two snapshots, by name: a
// resource of each, or nil. Parts that they share cost nothing.
func compare(from, to *snapshot, visit func(from, to *resource)) {
	cow.Compare(from.list, to.list, compareNames, visit)
}
