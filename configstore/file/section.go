// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/sha256"
	"errors"
	"math"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// section is the parsed state of one document's text. When the file changes and still contains the
// text, the section is reused at its new place.
type section struct {
	file *fileName
	hash [sha256.Size]byte
	// ordinal is the place of the section in its file; lines and documents are
	// how many there are above it.
	ordinal, lines, documents int
	// sameText is the next section of the same text, while a file is compared.
	sameText *section
	// count is the number of documents in the text: 1, unless it is an odd one.
	count       int
	definitions []*definition
	findings    []*finding
	// others counts the documents that are no objects, as in a values.yaml.
	others int
	// ambiguous means that a document may be about any object of the file.
	ambiguous bool
}

// reports reports whether there is anything to report of the section.
func (s *section) reports() bool {
	return len(s.findings) > 0 || s.others > 0 || s.ambiguous ||
		slices.ContainsFunc(s.definitions, func(c *definition) bool { return len(c.warnings) > 0 })
}

// fileName is the name of a file relative to the directory of the source, with
// slashes, and its path, which begins with the directory as the program wrote it.
type fileName struct{ name, path string }

// position is where a document is, counted from the beginning of its section.
type position struct {
	document     int
	item         string
	line, column int
}

func positionOf(doc manifest.Document) position {
	return position{document: doc.Number, item: doc.Item, line: doc.Line, column: doc.Column}
}

// errorAt returns an error at a place of the section.
func (s *section) errorAt(p position, object configstore.ConfigKey, err error) *Error {
	e := &Error{File: s.file.path, Document: p.document + s.documents, Item: p.item, Line: p.line, Column: p.column, Object: object, Err: err}
	if e.Line > 0 {
		e.Line += s.lines
	}
	var m *manifest.Error
	if errors.As(err, &m) && (s.lines > 0 || s.documents > 0) {
		moved := *m
		moved.Document += s.documents
		moved.Problems = slices.Clone(m.Problems)
		for i := range moved.Problems {
			if moved.Problems[i].Line > 0 {
				moved.Problems[i].Line += s.lines
			}
		}
		e.Err = &moved
	}
	return e
}

// finding is a document that cannot be read, or is of an unknown kind.
type finding struct {
	position position
	object   configstore.ConfigKey
	err      error
	class    class
	// ambiguous means that the document may be about any object of the file.
	ambiguous bool
	// before are the objects that a document of an unknown kind was about before
	// its kind became unknown; retains is set while one of them is kept.
	before  []configstore.ConfigKey
	retains bool
	// matched is set when before has been found out.
	matched bool
}

type class int

const (
	// malformed documents are errors.
	malformed class = iota
	// mistyped are the documents of an unknown kind or version that look as if
	// they were meant for the store: a warning.
	mistyped
	// foreign documents are counted.
	foreign
)

func classOf(doc manifest.Document) class {
	switch {
	case doc.Foreign:
		return foreign
	case errors.Is(doc.Err, configstore.ErrUnknownKind):
		return mistyped
	default:
		return malformed
	}
}

// isUnknownKind reports whether the document is an object of an unknown kind.
func (f *finding) isUnknownKind() bool { return errors.Is(f.err, configstore.ErrUnknownKind) }

// restOf returns an empty section behind all others of a file.
func restOf(file *fileName) *section { return &section{file: file, ordinal: math.MaxInt} }
