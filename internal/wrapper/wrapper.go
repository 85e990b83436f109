// SPDX-License-Identifier: Apache-2.0

// Package wrapper finds what a thing can do, or what it wraps.
package wrapper

// As returns thing as a T, or else the first T of those that it wraps. Wrappers have
// one of the methods
//
//	Unwrap() W
//	Unwrap() []any
//
// and what they wrap is looked into in its order. A nil thing is no T.
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
