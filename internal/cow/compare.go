// SPDX-License-Identifier: Apache-2.0

package cow

// Compare calls visit for the differences between two sequences without equal elements, in order:
// with an element of each that compare equal, or with one element and the zero value for the
// sequence that lacks it. Identical elements are left out. Shared parts of the sequences are
// skipped, so that the comparison of a sequence with its successor costs its changes and a look at
// each leaf.
func Compare[T comparable](a, b Sorted[T], cmp func(a, b T) int, visit func(a, b T)) {
	var none T
	var p, q position
	for p.leaf < len(a.leaves) || q.leaf < len(b.leaves) {
		if p.item == 0 && q.item == 0 && p.leaf < len(a.leaves) && q.leaf < len(b.leaves) && a.leaves[p.leaf] == b.leaves[q.leaf] {
			p.leaf++
			q.leaf++
			continue
		}
		order := 0
		switch {
		case p.leaf == len(a.leaves):
			order = 1
		case q.leaf == len(b.leaves):
			order = -1
		default:
			if x, y := a.get(p), b.get(q); x != y {
				order = cmp(x, y)
			}
		}
		switch {
		case order < 0:
			visit(a.get(p), none)
			p = a.after(p)
		case order > 0:
			visit(none, b.get(q))
			q = b.after(q)
		default:
			if x, y := a.get(p), b.get(q); x != y {
				visit(x, y)
			}
			p, q = a.after(p), b.after(q)
		}
	}
}

func (s Sorted[T]) get(p position) T { return s.leaves[p.leaf].items[p.item] }

// after returns the position after p.
func (s Sorted[T]) after(p position) position {
	if p.item++; p.item == len(s.leaves[p.leaf].items) {
		return position{leaf: p.leaf + 1}
	}
	return p
}
