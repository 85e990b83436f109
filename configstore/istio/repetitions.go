// SPDX-License-Identifier: Apache-2.0

package istio

import "slices"

// repetitions finds values that were seen before. The zero value has seen
// none. Few values are compared one by one, which costs no allocation.
type repetitions[K comparable] struct {
	few       [8]K
	positions [8]int
	count     int
	// many holds the first position of every value, once there are more than
	// fit in few.
	many map[K]int
}

// has reports whether a value was added.
func (r *repetitions[K]) has(value K) bool {
	if r.many != nil {
		_, ok := r.many[value]
		return ok
	}
	return slices.Contains(r.few[:r.count], value)
}

// add records that a value is at a position. If the value was added before, it
// returns the position of then, and true.
func (r *repetitions[K]) add(value K, position int) (first int, repeated bool) {
	if r.many == nil {
		for i := range r.count {
			if r.few[i] == value {
				return r.positions[i], true
			}
		}
		if r.count < len(r.few) {
			r.few[r.count], r.positions[r.count] = value, position
			r.count++
			return 0, false
		}
		r.many = make(map[K]int, 4*len(r.few))
		for i, v := range r.few {
			r.many[v] = r.positions[i]
		}
	}
	if first, repeated = r.many[value]; !repeated {
		r.many[value] = position
	}
	return first, repeated
}

// refuse adds a value, and refuses it if it was added before. The zero value may repeat: that it is
// missing is refused elsewhere. The format has the first position and the value.
func (r *repetitions[K]) refuse(at *field, value K, position int, format string) {
	var none K
	if first, ok := r.add(value, position); ok && value != none {
		at.refuse(format, first, value)
	}
}
