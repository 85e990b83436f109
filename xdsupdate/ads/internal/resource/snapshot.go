// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/internal/cow"
)

// Snapshot is a set of resources of one type, sorted by name: the resources of a selection at one
// moment, or the resources sent to a client. It is immutable, and shares unchanged parts with the snapshot
// that it was made from: the resources of thousands of clients cost each of them one pointer.
//
// A pointer is also an identity: clients with the same pointer are sent the same bytes.
type Snapshot struct {
	List cow.Sorted[*State]
	// Sum is the sum of the weights: the version of the set.
	Sum uint64
}

// NewSnapshot returns the snapshot of resources that are sorted and have different names. It keeps
// the slice.
func NewSnapshot(sorted []*State) *Snapshot {
	s := &Snapshot{List: cow.Adopt(sorted)}
	for _, r := range sorted {
		s.Sum += r.Weight()
	}
	return s
}

// Weight is the contribution of a resource to the version of a snapshot. Markers do not contribute.
func (r *State) Weight() uint64 {
	if r.Marker != Present {
		return 0
	}
	return Weight(xxhash.Sum64String(r.Name), r.Hash)
}

// Weight mixes the hash of a name with that of the content, so that sets with equal sums are equal:
// a sum of plain hashes would not change if two resources exchange their contents.
func Weight(name, content uint64) uint64 { return content * (2*name + 1) }

// Find returns the resource of a name, or nil.
func (s *Snapshot) Find(name string) *State {
	r, _ := s.List.FindFunc(func(r *State) int { return strings.Compare(r.Name, name) })
	return r
}

// Edit is a change of a snapshot: a new resource, or nil for none.
type Edit struct {
	Name     string
	Resource *State
}

// With returns a snapshot after edits, with one edit for each name, in any order. It returns s if
// they change nothing.
func (s *Snapshot) With(edits []Edit) *Snapshot {
	editor, sum, changed := s.List.Edit(len(edits)), s.Sum, false
	for _, e := range edits {
		probe := e.Resource
		if probe == nil {
			probe = &State{Name: e.Name}
		}
		old, found := editor.Find(CompareNames, probe)
		switch {
		case found && e.Resource != nil:
			if old == e.Resource {
				continue
			}
			sum += e.Resource.Weight() - old.Weight()
			editor.Replace(CompareNames, old, e.Resource, identical)
		case found:
			sum -= old.Weight()
			editor.Delete(CompareNames, old, identical)
		case e.Resource != nil:
			sum += e.Resource.Weight()
			editor.Insert(CompareNames, e.Resource)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return s
	}
	return &Snapshot{List: editor.Sorted(), Sum: sum}
}

// Without returns the snapshot without some names.
func (s *Snapshot) Without(names []string) *Snapshot {
	edits := make([]Edit, len(names))
	for i, name := range names {
		edits[i].Name = name
	}
	return s.With(edits)
}

func identical(a, b *State) bool { return a == b }

// Compare calls visit with each difference between two snapshots, by name: the resources of both,
// or nil. Shared parts cost nothing.
//
// It is not inlined: visit, and all that it uses, would be moved to the heap in packages that
// do not compile the generic function themselves.
//
//go:noinline
func Compare(from, to *Snapshot, visit func(from, to *State)) {
	cow.Compare(from.List, to.List, CompareNames, visit)
}

// WithAll returns the snapshot with some resources in their new states.
func (s *Snapshot) WithAll(resources []*State) *Snapshot {
	edits := make([]Edit, len(resources))
	for i, r := range resources {
		edits[i] = Edit{Name: r.Name, Resource: r}
	}
	return s.With(edits)
}
