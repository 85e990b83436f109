// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
)

// Document is what one document of the input, or one item of a List, holds:
// an object or an error.
type Document struct {
	// Number is the number of the document in the input, from 1. Empty
	// documents are not counted; the items of a List share one number.
	Number int
	// Item is the path of the object in its document if it is an item of a
	// List, for example "items[3]"; else empty.
	Item string
	// Line and Column say where the object begins in the input, from 1. Column
	// is 0 if only the line is known.
	Line, Column int
	// Key is the object. If Err is set, Key holds what could be read: it is
	// complete, with the canonical version of the kind and the default
	// namespace applied, or the zero key. Of an unknown kind it holds the kind
	// as written.
	Key configstore.ConfigKey
	// Config is the object if Err is nil.
	Config configstore.Config
	// Err is nil or an *Error, which matches ErrMalformed or
	// configstore.ErrUnknownKind.
	Err error

	above int
	node  *yaml.Node
}

// Parse reads every document of an input. It returns one Document per object
// and per error, in the order of the input: documents that cannot be read take
// none of the others with them. An empty input gives none.
func Parse(schemas configstore.Schemas, data []byte, opts Options) []Document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if limit := opts.maxBytes(); limit >= 0 && len(data) > limit {
		p := &parser{number: 1}
		p.fail(nil, configstore.ConfigKey{}, "", Problem{
			Message: fmt.Sprintf("the input has %d bytes, which is more than the limit of %d", len(data), limit),
		})
		return p.docs
	}
	p := &parser{schemas: schemas, opts: opts}
	for _, c := range split(data) {
		p.chunk(c)
	}
	return p.docs
}

// ParseAll is Parse for callers to whom an error anywhere is an error: it
// returns all objects, or nil and the errors of all documents, joined.
func ParseAll(schemas configstore.Schemas, data []byte, opts Options) ([]configstore.Config, error) {
	var configs []configstore.Config
	var errs []error
	for _, doc := range Parse(schemas, data, opts) {
		if doc.Err != nil {
			errs = append(errs, doc.Err)
			continue
		}
		configs = append(configs, doc.Config)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return configs, nil
}

// parser collects the documents of an input.
type parser struct {
	schemas configstore.Schemas
	opts    Options
	number  int
	docs    []Document
}

func (p *parser) chunk(c chunk) {
	roots, problem := trees(c)
	for _, root := range roots {
		p.number++
		p.object(root, "", configstore.GroupVersionKind{}, newDecoder(c, p.opts))
	}
	if problem != nil {
		p.number++
		p.fail(nil, p.salvage(c), "", *problem)
	}
}

// add appends a document at the place of its tree.
func (p *parser) add(d *decoder, root *yaml.Node, doc Document) {
	doc.Number = p.number
	doc.Line, doc.Column = d.above+root.Line, root.Column
	doc.above, doc.node = d.above, root
	p.docs = append(p.docs, doc)
}

// fail appends a document that cannot be read at all.
func (p *parser) fail(cause error, key configstore.ConfigKey, item string, problem Problem) {
	if cause == nil {
		cause = ErrMalformed
	}
	p.docs = append(p.docs, Document{
		Number: p.number, Item: item, Line: problem.Line, Column: problem.Column, Key: key,
		Err: &Error{Document: p.number, Item: item, Key: key, Problems: []Problem{problem}, cause: cause},
	})
}
