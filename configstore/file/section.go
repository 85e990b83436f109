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

// section is what is known of the text of one document. When the file changes and
// the text is found in it again, the section is kept and gets its new place.
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

// reader makes sections of texts.
type reader struct {
	schemas        configstore.Schemas
	skipValidation bool
	file           *fileName
	// lost has the last good states of the objects that the file may have lost.
	lost map[configstore.ConfigKey]*definition
	// ambiguous means that a document may be about any object of the file.
	ambiguous bool
}

// read returns the section of a text.
func (r *reader) read(text manifest.Text, hash [sha256.Size]byte) *section {
	s := &section{file: r.file, hash: hash}
	docs, count := text.Parse()
	s.count = count
	for _, doc := range docs {
		r.document(s, doc)
	}
	return s
}

// last returns the last good state of an object in the file, or nil.
func (r *reader) last(key configstore.ConfigKey) *configstore.Config {
	if def := r.lost[key]; def != nil {
		return def.config
	}
	return nil
}

// document adds what one document says.
func (r *reader) document(s *section, doc manifest.Document) {
	switch {
	case doc.Err == nil:
		r.object(s, doc)
	case errors.Is(doc.Err, configstore.ErrUnknownKind):
		s.findings = append(s.findings, &finding{position: problemOf(doc), object: doc.Key, err: doc.Err, class: classOf(doc)})
	case doc.Key.Name != "":
		s.definition(doc).keep(r.last(doc.Key))
		s.findings = append(s.findings, &finding{position: problemOf(doc), object: doc.Key, err: doc.Err})
	default:
		if doc.Foreign {
			s.others++
		}
		s.ambiguous, r.ambiguous = true, true
		s.findings = append(s.findings, &finding{position: problemOf(doc), err: doc.Err, class: classOf(doc), ambiguous: true})
	}
}

// object adds an object that can be read. If it breaks the rules of its kind, it
// is as bad as one that cannot.
func (r *reader) object(s *section, doc manifest.Document) {
	config := doc.Config
	// These two are the store's to set.
	config.ResourceVersion, config.Generation = "", 0
	c := s.definition(doc)
	checked, warnings, err := r.check(config)
	if err == nil {
		c.config, c.checked = &config, checked
		for _, w := range warnings {
			p := c.position
			p.line, p.column = doc.Position(w.Field)
			c.warnings = append(c.warnings, warning{position: p, violation: w})
		}
		return
	}
	c.keep(r.last(doc.Key))
	p := c.position
	var invalid *configstore.ValidationError
	if errors.As(err, &invalid) {
		p.line, p.column = doc.Position(invalid.Violations[0].Field)
		if len(invalid.Violations) > maxViolations {
			invalid.Violations = slices.Clone(invalid.Violations[:maxViolations])
		}
	}
	s.findings = append(s.findings, &finding{position: p, object: doc.Key, err: err})
}

// maxViolations bounds what is kept of an object that is wrong all over.
const maxViolations = 100

// problemOf returns the place of the first problem of a document.
func problemOf(doc manifest.Document) position {
	p := positionOf(doc)
	var m *manifest.Error
	if errors.As(doc.Err, &m) && m.Problems[0].Line > 0 {
		p.line, p.column = m.Problems[0].Line, m.Problems[0].Column
	}
	return p
}

// check validates an object by its schema, unless that is left to the store.
func (r *reader) check(config configstore.Config) (checked *configstore.Checked, warnings []configstore.Violation, err error) {
	if r.skipValidation {
		return nil, nil, nil
	}
	return r.schemas.Check(config)
}

// restOf returns an empty section behind all others of a file.
func restOf(file *fileName) *section { return &section{file: file, ordinal: math.MaxInt} }
