// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// space is the entries and the workloads of one namespace, arranged so that a
// workload finds its selectors, and a selector its workloads, without looking at
// others. Workloads with the same labels form a group, which knows the entries
// that select it: only the first of them has to look.
type space struct {
	// entries are the ServiceEntries, own the workloads of WorkloadEntries.
	entries map[string]*entry
	own     map[string]*workload
	groups  map[*sharedLabels]*group
	// byLabel holds the groups that have a label.
	byLabel map[label]map[*group]struct{}
	// selectors holds each entry that selects workloads under one label of its
	// selector, the one that was rarest among selectors.
	selectors map[label]map[*entry]struct{}
	// everything holds the entries with an empty selector, which as in Istio 1.30
	// select every workload of the namespace.
	everything map[*entry]struct{}
}

type label struct{ key, value string }

// group is the workloads of a namespace that have the same labels.
type group struct {
	space  *space
	labels *sharedLabels
	// workloads are in no order.
	workloads []*workload
	// entries are the entries that select the group.
	entries []*entry
}

func newSpace() *space {
	return &space{
		entries: map[string]*entry{}, own: map[string]*workload{}, groups: map[*sharedLabels]*group{},
		byLabel: map[label]map[*group]struct{}{}, selectors: map[label]map[*entry]struct{}{}, everything: map[*entry]struct{}{},
	}
}

func (s *space) empty() bool {
	return len(s.entries) == 0 && len(s.groups) == 0
}

// addSelector files an entry and returns the groups that it selects.
func (s *space) addSelector(e *entry) []*group {
	if len(e.selector) == 0 {
		s.everything[e] = struct{}{}
	} else {
		insert(s.selectors, s.rarest(e.selector), e)
	}
	selected := s.matchingGroups(e.selector)
	for _, g := range selected {
		g.entries = append(g.entries, e)
	}
	return selected
}

// removeSelector undoes addSelector.
func (s *space) removeSelector(e *entry) {
	if len(e.selector) == 0 {
		delete(s.everything, e)
	}
	for k, v := range e.selector {
		remove(s.selectors, label{k, v}, e)
	}
	for _, g := range s.matchingGroups(e.selector) {
		g.entries = slices.DeleteFunc(g.entries, func(f *entry) bool { return e == f })
	}
}

// rarest returns the label of a selector that the fewest selectors are filed
// under, the least of those by text.
func (s *space) rarest(selector registry.Labels) label {
	var best label
	count := -1
	for k, v := range selector {
		l := label{k, v}
		n := len(s.selectors[l])
		if count < 0 || n < count || n == count && l.key < best.key {
			best, count = l, n
		}
	}
	return best
}

// matchingGroups returns the groups that a selector selects.
func (s *space) matchingGroups(selector registry.Labels) []*group {
	if len(selector) == 0 {
		return slices.Collect(maps.Values(s.groups))
	}
	var fewest map[*group]struct{}
	for k, v := range selector {
		having := s.byLabel[label{k, v}]
		if having == nil {
			return nil
		}
		if fewest == nil || len(having) < len(fewest) {
			fewest = having
		}
	}
	var out []*group
	for g := range fewest {
		if selector.SubsetOf(g.labels.labels) {
			out = append(out, g)
		}
	}
	return out
}

// matchingEntries returns the entries that select workloads with these labels.
func (s *space) matchingEntries(labels registry.Labels) []*entry {
	out := slices.Collect(maps.Keys(s.everything))
	for k, v := range labels {
		for e := range s.selectors[label{k, v}] {
			if e.selector.SubsetOf(labels) {
				out = append(out, e)
			}
		}
	}
	return out
}

// join puts a workload into the group of its labels.
func (s *space) join(w *workload) {
	g := s.group(w.attributes.labels)
	w.group, w.position = g, int32(len(g.workloads)) //nolint:gosec // there are fewer workloads than 2^31
	g.workloads = append(g.workloads, w)
}

func (s *space) group(labels *sharedLabels) *group {
	if g, ok := s.groups[labels]; ok {
		return g
	}
	g := &group{space: s, labels: labels, entries: s.matchingEntries(labels.labels)}
	s.groups[labels] = g
	for k, v := range labels.labels {
		insert(s.byLabel, label{k, v}, g)
	}
	return g
}

// leave takes a workload out of its group.
func (w *workload) leave() {
	g, last := w.group, len(w.group.workloads)-1
	moved := g.workloads[last]
	g.workloads[w.position], moved.position = moved, w.position
	g.workloads[last] = nil
	g.workloads = g.workloads[:last]
	w.group = nil
	if last == 0 {
		g.space.drop(g)
	}
}

// drop removes a group without workloads.
func (s *space) drop(g *group) {
	delete(s.groups, g.labels)
	for k, v := range g.labels.labels {
		remove(s.byLabel, label{k, v}, g)
	}
}

// insert and remove keep an index without empty sets.
func insert[T comparable](index map[label]map[T]struct{}, l label, v T) {
	if index[l] == nil {
		index[l] = map[T]struct{}{}
	}
	index[l][v] = struct{}{}
}

func remove[T comparable](index map[label]map[T]struct{}, l label, v T) {
	if delete(index[l], v); len(index[l]) == 0 {
		delete(index, l)
	}
}
