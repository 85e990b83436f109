// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// read returns the section of a new text: its validated objects, and its findings.
func (e *edit) read(text manifest.Text, hash [sha256.Size]byte) *section {
	s := &section{file: e.new.file, hash: hash}
	docs, count := text.Parse()
	s.count = count
	for _, doc := range docs {
		e.document(s, doc)
	}
	return s
}

// document adds the result of one document to its section.
func (e *edit) document(s *section, doc manifest.Document) {
	switch {
	case doc.Err == nil:
		e.object(s, doc)
	case errors.Is(doc.Err, configstore.ErrUnknownKind):
		s.findings = append(s.findings, &finding{position: problemOf(doc), object: doc.Key, err: doc.Err, class: classOf(doc)})
	case doc.Key.Name != "":
		e.bad(s.definition(doc), problemOf(doc), doc.Config, doc.Err)
	default:
		if doc.Foreign {
			s.others++
		}
		s.ambiguous, e.ambiguous = true, true
		s.findings = append(s.findings, &finding{position: problemOf(doc), err: doc.Err, class: classOf(doc), ambiguous: true})
	}
}

// object adds an object that can be read, and validates it, unless that is left to the
// store. If it breaks the rules of its kind, it is as bad as one that cannot be read.
func (e *edit) object(s *section, doc manifest.Document) {
	config, d := commit.Dated(doc.Config), s.definition(doc)
	// These two are the store's to set.
	config.ResourceVersion, config.Generation = "", 0
	var warnings []configstore.Violation
	if !e.skipValidation {
		var err error
		if d.checked, warnings, err = e.schemas.Check(config); err != nil {
			e.invalid(d, doc, err)
			return
		}
	}
	d.config = &config
	for _, w := range warnings {
		p := d.position
		p.line, p.column = doc.Position(w.Field)
		d.warnings = append(d.warnings, warning{position: p, violation: w})
	}
}

// maxViolations bounds the number of violations kept for one object.
const maxViolations = 100

// invalid adds an object that breaks the rules of its kind, at the place of the first.
func (e *edit) invalid(d *definition, doc manifest.Document, err error) {
	p := d.position
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		p.line, p.column = doc.Position(invalid.Violations[0].Field)
		if len(invalid.Violations) > maxViolations {
			invalid.Violations = slices.Clone(invalid.Violations[:maxViolations])
		}
	}
	e.bad(d, p, doc.Config, err)
}

// bad says that a document is bad: the last good state of its object stays. Without one a
// placeholder takes its place, if its kind has them. read is what could be read of the object.
func (e *edit) bad(d *definition, at position, read configstore.Config, err error) {
	var kept *configstore.Config
	if lost := e.lost[d.key]; lost != nil {
		kept = lost.config
	}
	if schema, _ := e.schemas.Find(d.key.Kind); kept == nil || configstore.IsPlaceholder(kept) {
		read.ResourceVersion, read.Generation = "", 0
		if placeholder, ok := schema.Placeholder(read, err); ok {
			kept = &placeholder
		}
	}
	d.keep(kept)
	d.section.findings = append(d.section.findings, &finding{position: at, object: d.key, err: err})
}

// problemOf returns the place of the first problem of a document.
func problemOf(doc manifest.Document) position {
	p := positionOf(doc)
	var m *manifest.Error
	if errors.As(doc.Err, &m) && m.Problems[0].Line > 0 {
		p.line, p.column = m.Problems[0].Line, m.Problems[0].Column
	}
	return p
}
