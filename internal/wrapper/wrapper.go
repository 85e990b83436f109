// SPDX-License-Identifier: Apache-2.0

// Package wrapper finds the abilities of a value and of the values that it wraps.
package wrapper

// As returns thing as a T, or else the first T among the values that it wraps. Wrappers have one of
// the methods
//
//	Unwrap() W
//	Unwrap() []any
//
// and their values are searched in order. A nil thing is not a T.
func As[T, W any](thing any) (ability T, ok bool) {
	if ability, ok = thing.(T); ok {
		return ability, true
	}
	switch wrapper := thing.(type) {
	case interface{ Unwrap() W }:
		return As[T, W](wrapper.Unwrap())
	case interface{ Unwrap() []any }:
		for _, part := range wrapper.Unwrap() {
			if ability, ok = As[T, W](part); ok {
				return ability, true
			}
		}
	}
	return ability, false
}
