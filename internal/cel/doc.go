// SPDX-License-Identifier: Apache-2.0

// Package cel checks whether a text is an expression of the Common Expression
// Language, by the grammar of its specification (github.com/google/cel-spec,
// doc/langdef.md, "Syntax").
//
//	if err := cel.Check("response.code >= 400"); err != nil {
//		return err // e.g. "column 15: expected an expression, found the end"
//	}
//
// Check does not evaluate the meaning of an expression: it ignores names, types, functions and
// macros. The language's own implementation, github.com/google/cel-go, can check them, but would
// add 24 packages and 4.6 MB to a program that needs the grammar only. The two agree on every text
// except a 2⁶³ without a sign, which Check accepts.
//
// # Concurrency
//
// Check is a pure function.
package cel
