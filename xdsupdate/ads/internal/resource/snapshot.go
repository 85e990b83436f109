// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"iter"
	"strings"
	"sync"

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
	// renamed is the number of clusters whose load assignments have other names. indexed guards their index,
	// by the names of the assignments, which is made when it is needed.
	renamed int
	indexed sync.Once
	index   map[string][]*State
}

// NewSnapshot returns the snapshot of resources that are sorted and have different names. It keeps
// the slice.
func NewSnapshot(sorted []*State) *Snapshot {
	s := &Snapshot{List: cow.Adopt(sorted)}
	for _, r := range sorted {
		s.add(r, 1)
	}
	return s
}

// add counts a resource once, or minus once.
func (s *Snapshot) add(r *State, sign int) {
	s.Sum += uint64(sign) * r.Weight() //nolint:gosec // modulo 2⁶⁴
	if r.References().Assignment != "" {
		s.renamed += sign
	}
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

// ClustersOf yields the clusters that take their endpoints from a load assignment.
func (s *Snapshot) ClustersOf(assignment string) iter.Seq[*State] {
	return func(yield func(*State) bool) {
		if r := s.Find(assignment); r.IsPresent() && r.Assignment() == assignment && !yield(r) || s.renamed == 0 {
			return
		}
		s.indexed.Do(s.makeIndex)
		for _, r := range s.index[assignment] {
			if !yield(r) {
				return
			}
		}
	}
}

func (s *Snapshot) makeIndex() {
	s.index = make(map[string][]*State, s.renamed)
	for r := range s.List.All() {
		if name := r.References().Assignment; name != "" {
			s.index[name] = append(s.index[name], r)
		}
	}
}

// Edit is a change of a snapshot: a new resource, or nil for none.
type Edit struct {
	Name     string
	Resource *State
}

// With returns a snapshot after edits, with one edit for each name, in any order. It returns s if
// they change nothing.
func (s *Snapshot) With(edits []Edit) *Snapshot {
	editor, next, changed := s.List.Edit(len(edits)), &Snapshot{Sum: s.Sum, renamed: s.renamed}, false
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
			next.add(old, -1)
			next.add(e.Resource, 1)
			editor.Replace(CompareNames, old, e.Resource, identical)
		case found:
			next.add(old, -1)
			editor.Delete(CompareNames, old, identical)
		case e.Resource != nil:
			next.add(e.Resource, 1)
			editor.Insert(CompareNames, e.Resource)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return s
	}
	next.List = editor.Sorted()
	return next
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
