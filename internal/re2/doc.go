// SPDX-License-Identifier: Apache-2.0

// Package re2 says whether Envoy compiles a regular expression. Its library, RE2, has
// nearly the syntax of Go's regexp/syntax, which does the parsing; the differences are
// Go's own names of character classes and, since Envoy 1.40 compiles expressions as
// Latin-1, what is beyond that.
//
//	if err := re2.Check(`\p{Letter}+`); err != nil {
//		return err // invalid character class range: `\p{Letter}`
//	}
//
// Envoy refuses the whole route configuration over one bad expression, and over one
// whose program is too large: a program has about one instruction for each byte of
// a literal, for each range of a class, and for each operator; a repetition repeats
// what it is of. The size is estimated from above, as texts in UTF-8, which Envoy up to
// 1.39 reads, and as Latin-1. A test compares it with what Envoy finds.
//
// # Concurrency
//
// All functions are pure.
package re2
