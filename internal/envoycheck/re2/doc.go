// SPDX-License-Identifier: Apache-2.0

// Package re2 checks whether Envoy compiles a regular expression. Envoy's library RE2 has nearly
// the same syntax as Go's regexp/syntax, which does the parsing. The differences are Go's
// additional names of character classes and, because Envoy 1.40 compiles expressions as Latin-1,
// characters beyond Latin-1.
//
//	if err := re2.Check(`\p{Letter}+`); err != nil {
//		return err // invalid character class range: `\p{Letter}`
//	}
//
// Envoy rejects the whole route configuration because of one invalid expression, or because of one
// whose program is too large. A program has about one instruction for each byte of a literal, for
// each range of a class, and for each operator; a repetition repeats its operand. The size is an
// upper bound, for expressions in UTF-8, which Envoy up to 1.39 uses, and in Latin-1. A test
// compares it with Envoy's size.
//
// # Concurrency
//
// All functions are pure.
package re2
