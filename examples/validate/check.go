// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// checker checks one file after the other.
type checker struct {
	schemas configstore.Schemas
	opts    options
	report  *report
	// defined has the first definition of each object.
	defined map[configstore.ConfigKey]*definition
	// accepted are the valid objects, if they are needed later.
	accepted []configstore.Mutation
	// converted are the VirtualServices of routes of the Gateway API, if they are needed.
	converted []*configstore.Config
	// kubernetes are the objects that are not checked and count, if they are needed.
	kubernetes kubernetes
	// files is the number of files that were read.
	files int
}

// definition is the text of an object.
type definition struct {
	location
	file int
	// text is the document, item the object within it. They are kept only if positions of fields
	// are needed later.
	text manifest.Text
	item string
}

func newChecker(opts options) *checker {
	return &checker{
		schemas: schemas(), opts: opts, report: &report{Findings: []finding{}},
		defined: map[configstore.ConfigKey]*definition{},
	}
}

// schemas returns the kinds that are checked: Istio's, and the Gateway API's.
func schemas() configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	for _, s := range gatewayapi.DirectorySchemas().All() {
		if s.GroupVersionKind.Group == gatewayAPI {
			b.MustAdd(s)
		}
	}
	return istio.Schemas().Union(b.Build())
}

// input checks one file.
func (c *checker) input(in input, stdin io.Reader) {
	c.files++
	whole := definition{location: location{File: in.name}, file: c.files}
	data, err := in.read(stdin)
	if err != nil {
		c.add(finding{Severity: severityError, Reason: reasonUnreadable, Message: err.Error()}, whole.location)
		return
	}
	c.report.Files++
	texts, err := manifest.Texts(c.schemas, data, c.opts.manifest)
	if err != nil {
		c.problems(manifest.Document{Err: err}, whole)
	}
	for _, text := range texts {
		// Only the tree of one document is in memory at a time.
		docs, _ := text.Parse()
		if c.opts.complete && slices.ContainsFunc(docs, func(doc manifest.Document) bool { return doc.Foreign }) {
			c.kubernetes.read(text.Bytes, c.opts.manifest.DefaultNamespace)
		}
		for _, doc := range docs {
			d := definition{location: location{File: in.name, Line: doc.Line + text.Lines, Column: doc.Column}, file: c.files, text: text, item: doc.Item}
			c.document(doc, d)
		}
	}
}

// add records a finding in the current file.
func (c *checker) add(f finding, at location) {
	f.location, f.file = at, c.files
	c.report.add(f)
}

// document checks one document, or one item of a List.
func (c *checker) document(doc manifest.Document, d definition) {
	if doc.Err != nil {
		c.problems(doc, d)
	}
	if doc.Key.Name != "" && c.schemas.Has(doc.Key.Kind) && !c.define(doc.Key, d) {
		return
	}
	if doc.Err == nil {
		c.object(doc, d)
	}
}

// problems records the reasons why a document cannot be read. A document of another system is one
// note.
func (c *checker) problems(doc manifest.Document, d definition) {
	var malformed *manifest.Error
	if !errors.As(doc.Err, &malformed) {
		malformed = &manifest.Error{Problems: []manifest.Problem{{Message: doc.Err.Error()}}}
	}
	for _, p := range malformed.Problems {
		f := about(doc.Key)
		f.Severity, f.Reason, f.Field, f.Message = severityError, reasonMalformed, p.Path, p.Message
		at := d.location
		if p.Line > 0 {
			at.Line, at.Column = p.Line+d.text.Lines, p.Column
		}
		unknown := errors.Is(doc.Err, configstore.ErrUnknownKind)
		switch {
		case doc.Foreign || unknown && doc.Key.Kind.Group == gatewayAPI:
			f.Severity, f.Reason, f.Message = severityNote, reasonNotChecked, "is not checked: "+p.Message
			switch {
			case !unknown:
				f.Field, f.Message = "", "is not checked: the document is no object"
			case !doc.Foreign:
				f.Field, f.Message = "", "is not checked: the kind is not supported"
			case counts(doc.Key.Kind):
				f.Field, f.Message = "", "is not checked; -complete counts it"
			}
			c.add(f, at)
			return
		case unknown:
			f.Reason = reasonUnknownKind
		}
		c.add(f, at)
	}
}

// define records the definition of an object. It returns false if the object is already defined,
// which is an error.
func (c *checker) define(key configstore.ConfigKey, d definition) bool {
	first, taken := c.defined[key]
	if !taken {
		if !c.opts.complete {
			d.text = manifest.Text{}
		}
		c.defined[key] = &d
		return true
	}
	f := about(key)
	f.Severity, f.Reason = severityError, reasonDuplicate
	f.Message = fmt.Sprintf("is defined already, at %s:%d", first.File, first.Line)
	c.add(f, d.location)
	return false
}

// object checks a decoded object.
func (c *checker) object(doc manifest.Document, d definition) {
	c.report.Objects++
	config := doc.Config
	config.ResourceVersion, config.Generation = "", 0 // the store sets these
	checked, warnings, err := c.schemas.Check(config)
	for _, w := range warnings {
		c.violation(severityWarning, reasonQuestionable, doc, w, d)
	}
	if err != nil {
		for _, v := range violationsOf(err) {
			c.violation(severityError, reasonInvalid, doc, v, d)
		}
		return
	}
	if reason := traffic.WithoutEffect(doc.Key.Kind); reason != "" && !c.opts.complete {
		f := about(doc.Key)
		f.Severity, f.Reason, f.Message = severityWarning, reasonNoEffect, reason
		c.add(f, d.location)
	}
	if c.opts.complete { // All objects without an effect are found together.
		c.accepted = append(c.accepted, configstore.Mutation{Op: configstore.OpCreate, Config: config, Checked: checked})
	}
}

func violationsOf(err error) []configstore.Violation {
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		return invalid.Violations
	}
	return []configstore.Violation{{Message: err.Error()}}
}

// violation records a finding about a field, at the place of the field.
func (c *checker) violation(s severity, r reason, doc manifest.Document, v configstore.Violation, d definition) {
	f := about(doc.Key)
	f.Severity, f.Reason, f.Field, f.Message = s, r, v.Field, v.Message
	line, column := doc.Position(v.Field)
	c.add(f, location{File: d.File, Line: line + d.text.Lines, Column: column})
}
