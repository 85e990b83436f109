// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"errors"
	"slices"
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
	place := e.File
	if e.Line > 0 {
		place += ":" + strconv.Itoa(e.Line)
		if e.Column > 0 {
			place += ":" + strconv.Itoa(e.Column)
		}
	}
	document := manifest.Error{Document: e.Document, Item: e.Item, Key: e.Object, Problems: e.problems()}
	return place + ": " + document.Error()
}

// problems returns the problems of the document. The position of a single one is left out if it is
// that of the error.
func (e *Error) problems() (problems []manifest.Problem) {
	if invalid, ok := errors.AsType[*configstore.ValidationError](e.Err); ok && invalid.Key == e.Object {
		for _, v := range invalid.Violations {
			problems = append(problems, manifest.Problem{Path: v.Field, Message: v.Message})
		}
		return problems
	}
	m, ok := errors.AsType[*manifest.Error](e.Err)
	if !ok {
		return []manifest.Problem{{Message: e.Err.Error()}}
	}
	problems = slices.Clone(m.Problems)
	if len(problems) == 1 && problems[0].Line == e.Line && problems[0].Column == e.Column {
		problems[0].Line = 0
	}
	return problems
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
