// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// ErrMalformed is matched by the error of every document that cannot be read:
// broken YAML, unknown fields, values of a wrong type, missing names, an input
// beyond the limits.
var ErrMalformed = errors.New("malformed manifest")

// maxProblems bounds the number of problems kept for one document.
const maxProblems = 100

// Problem is one thing that is wrong with a document.
type Problem struct {
	// Path is the path of the field in its object, for example
	// "spec.ports[1].number". Empty if the object as a whole is meant.
	Path string
	// Line and Column are the place of the field in the input, counted from 1. Column is 0 if only
	// the line is known, Line is 0 if neither is.
	Line, Column int
	// Message describes the problem.
	Message string
}

// String returns "line 3, column 5: path: message".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString("line " + strconv.Itoa(p.Line))
		if p.Column > 0 {
			b.WriteString(", column " + strconv.Itoa(p.Column))
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error says why a document holds no object. It matches either ErrMalformed or
// configstore.ErrUnknownKind.
type Error struct {
	// Document is the number of the document in its input, from 1, or 0 if the
	// input as a whole is meant.
	Document int
	// Item is the path of the object in the document if it is an item of a
	// List, for example "items[3]"; else empty.
	Item string
	// Key is the object, as far as it could be read: see Document.Key.
	Key configstore.ConfigKey
	// Problems lists the problems in the order of the input. It is never empty; very long lists are
	// truncated.
	Problems []Problem

	cause error
}

// Error returns "document 2, ServiceEntry default/db: problem; problem".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Document > 0 {
		b.WriteString("document " + strconv.Itoa(e.Document))
		if e.Item != "" {
			b.WriteString(" " + e.Item)
		}
		if e.Key.Name != "" {
			b.WriteString(", " + e.Key.Object())
		}
		b.WriteString(": ")
	}
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Unwrap returns ErrMalformed or configstore.ErrUnknownKind.
func (e *Error) Unwrap() error { return e.cause }
