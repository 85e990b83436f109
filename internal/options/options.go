// SPDX-License-Identifier: Apache-2.0

// Package options is how the constructors of this module take their options: as
// a last parameter that may be left out.
package options

import "fmt"

// One returns the only element of opts, or the zero value if there is none. More
// than one is a programming error and panics with the name of the constructor and what to
// pass: options are not merged.
func One[T any](constructor string, opts []T) T {
	switch len(opts) {
	case 0:
		var zero T
		return zero
	case 1:
		return opts[0]
	default:
		panic(fmt.Sprintf("%s: %d arguments of the type %T: pass one with all settings, they are not merged", constructor, len(opts), opts[0]))
	}
}
