// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

var (
	// ErrDuplicate means that the object is in another file too, or twice in
	// one, and that the other place comes first.
	ErrDuplicate = errors.New("object is defined elsewhere")
	// ErrNotOwned means that the store holds an object of the same key that this
	// source has not put there. It is left alone.
	ErrNotOwned = commit.ErrNotOwned
)

// Error is one thing that keeps a part of the directory from being in the
// store, or a warning. Err matches, among others, manifest.ErrMalformed,
// configstore.ErrUnknownKind, configstore.ErrInvalid, ErrDuplicate, ErrNotOwned,
// or the errors of package io/fs.
type Error struct {
	// File is the path of the file or directory, beginning with the directory of
	// the source as it was given to New.
	File string
	// Document is the number of the document in the file, from 1, or 0 if the
	// file as a whole is meant.
	Document int
	// Item is the path of the object in the document if it is an item of a
	// List, for example "items[3]"; else empty.
	Item string
	// Line and Column say where in the file, from 1, or are 0 if that is
	// unknown.
	Line, Column int
	// Object is the object that the document is about, or the zero key if that
	// is unknown.
	Object configstore.ConfigKey
	// Err is the cause. It is never nil.
	Err error
}

// Error returns "path:line:column: document 2, ServiceEntry default/db: reason".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
		if e.Column > 0 {
			b.WriteString(":" + strconv.Itoa(e.Column))
		}
	}
	b.WriteString(": ")
	if e.Document > 0 {
		b.WriteString("document " + strconv.Itoa(e.Document))
		if e.Item != "" {
			b.WriteString(" " + e.Item)
		}
		if e.Object.Name != "" {
			b.WriteString(", " + e.Object.Object())
		}
		b.WriteString(": ")
	}
	b.WriteString(e.reason())
	return b.String()
}

// reason returns what Error has not said yet: a single problem of a document
// stands at the position of the error.
func (e *Error) reason() string {
	var invalid *configstore.ValidationError
	if errors.As(e.Err, &invalid) && invalid.Key == e.Object {
		violations := make([]string, len(invalid.Violations))
		for i, v := range invalid.Violations {
			violations[i] = v.String()
		}
		return strings.Join(violations, "; ")
	}
	var m *manifest.Error
	if !errors.As(e.Err, &m) {
		return e.Err.Error()
	}
	problems := make([]string, len(m.Problems))
	for i, p := range m.Problems {
		if len(m.Problems) == 1 && p.Line == e.Line && p.Column == e.Column {
			p.Line = 0
		}
		problems[i] = p.String()
	}
	return strings.Join(problems, "; ")
}

// subject returns the text of the error without the place in the file.
func (e *Error) subject() string {
	text := e.Err.Error()
	var m *manifest.Error
	var duplicate *duplicateError
	switch {
	case errors.As(e.Err, &m):
		var b strings.Builder
		for _, p := range m.Problems {
			b.WriteString("\n" + p.Path + ": " + p.Message)
		}
		text = b.String()
	case errors.As(e.Err, &duplicate):
		text = duplicate.path
	}
	return e.File + "\n" + e.Object.String() + "\n" + text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// compare orders errors by file, place and text.
func (e *Error) compare(f *Error) int {
	c := cmp.Or(
		strings.Compare(e.File, f.File),
		cmp.Compare(e.Document, f.Document),
		cmp.Compare(e.Line, f.Line),
		cmp.Compare(e.Column, f.Column),
	)
	if c != 0 {
		return c
	}
	return strings.Compare(e.Err.Error(), f.Err.Error())
}

// duplicateError says where the object is defined that counts.
type duplicateError struct {
	path string
	at   position
}

// Error returns "object is defined elsewhere: path:line, document 1".
func (e *duplicateError) Error() string {
	at := e.path
	if e.at.line > 0 {
		at += ":" + strconv.Itoa(e.at.line)
	}
	return ErrDuplicate.Error() + ": " + at + ", document " + strconv.Itoa(e.at.document)
}

// Unwrap returns ErrDuplicate.
func (e *duplicateError) Unwrap() error { return ErrDuplicate }
