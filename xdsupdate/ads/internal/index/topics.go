// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"
)

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
	if disjoint(a, b) {
		return a
	}
	var out []*Topic[H]
	if len(b) < len(a)/16 {
		out = make([]*Topic[H], 0, len(a))
		for _, p := range b {
			before, _, after := cut(a, p)
			out, a = append(out, before...), after
		}
		return append(out, a...)
	}
	for _, p := range a {
		_, found, after := cut(b, p)
		if b = after; !found {
			out = append(out, p)
		}
	}
	return out
}

// disjoint reports whether a and b have no topic in common.
func disjoint[H comparable](a, b []*Topic[H]) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, p := range a {
		_, found, after := cut(b, p)
		if b = after; found {
			return false
		}
	}
	return true
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
