// SPDX-License-Identifier: Apache-2.0

package cow

// Leaves returns the sizes of the leaves.
func (s Sorted[T]) Leaves() []int {
	var out []int
	for _, l := range s.leaves {
		out = append(out, len(l.items))
	}
	return out
}
