// SPDX-License-Identifier: Apache-2.0

// Package cel tells texts that are expressions of the Common Expression Language
// from texts that are not, by the grammar of the language's specification
// (github.com/google/cel-spec, doc/langdef.md, "Syntax").
//
//	if err := cel.Check("response.code >= 400"); err != nil {
//		return err // e.g. "column 15: expected an expression, found the end"
//	}
//
// It does not say what an expression means: names, types, functions and macros
// are not looked at. The language's own implementation can do that, but it would
// be a tenth of the core's packages; what is wanted here is a parser.
//
// # Concurrency
//
// Check is a pure function.
package cel
