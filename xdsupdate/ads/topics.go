// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
)

// The functions below take sorted topics without repetitions, and return such. Mostly
// one list is long and the other short, or both are nearly the same: short ones are
// searched for, and the same topic is recognized without comparing names. A result may
// be one of the arguments.

func union(a, b []*topic) []*topic {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) == 0 {
		return a
	}
	out := make([]*topic, 0, len(a)+len(b))
	for _, p := range b {
		before, _, after := cut(a, p)
		out, a = append(append(out, before...), p), after
	}
	return append(out, a...)
}

func without(a, b []*topic) []*topic {
	if disjoint(a, b) {
		return a
	}
	var out []*topic
	if len(b) < len(a)/16 {
		out = make([]*topic, 0, len(a))
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

func disjoint(a, b []*topic) bool {
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

func intersection(a, b []*topic) []*topic {
	if len(a) > len(b) {
		a, b = b, a
	}
	var out []*topic
	for _, p := range a {
		_, found, after := cut(b, p)
		if b = after; found {
			out = append(out, p)
		}
	}
	return out
}

// cut returns what is before and after a topic, and whether it is in the list. It looks
// near the beginning first.
func cut(list []*topic, p *topic) (before []*topic, found bool, after []*topic) {
	if len(list) > 0 && list[0] == p {
		return nil, true, list[1:]
	}
	end := 1
	for end < len(list) && list[end].name < p.name {
		end *= 2
	}
	from := end / 2 // what is before it is less
	i, found := slices.BinarySearchFunc(list[from:min(end+1, len(list))], p, byName)
	if i += from; found {
		return list[:i], true, list[i+1:]
	}
	return list[:i], false, list[i:]
}

// sumOf returns the sum of the hashes of names.
func sumOf(topics []*topic) uint64 {
	var sum uint64
	for _, t := range topics {
		sum += t.hash
	}
	return sum
}

// sortTopics sorts the topics of names and drops those that occur twice.
func sortTopics(topics []*topic) []*topic {
	if !slices.IsSortedFunc(topics, byName) {
		slices.SortFunc(topics, byName)
	}
	return slices.Compact(topics)
}

func byName(a, b *topic) int { return strings.Compare(a.name, b.name) }

func namesOf(topics []*topic) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = t.name
	}
	return out
}
