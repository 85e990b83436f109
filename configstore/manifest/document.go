// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
)

// Document is the content of one document of the input, or of one item of a List: an object or an
// error.
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
	// and the namespace as written, for it is not known whether objects of this
	// kind have one.
	Key configstore.ConfigKey
	// Config is the object if Err is nil. Otherwise it is the readable part of the object, if Key
	// is set. configstore.Unread returns the fields of the spec that cannot be read, or that
	// Options.Lenient drops.
	Config configstore.Config
	// Err is nil or an *Error, which matches ErrMalformed or
	// configstore.ErrUnknownKind.
	Err error
	// Foreign means that the document was not meant for the schemas, so that Err
	// is no mistake of its author: its kind is unknown and of a group that is
	// neither that of a schema nor a sibling of one, or the document has neither
	// apiVersion nor kind, as a package.json or a values.yaml. A document of
	// networking.istio.io/v1 whose kind is mistyped is not foreign to the
	// schemas of Istio.
	Foreign bool

	above int
	node  *yaml.Node
}

// Parse reads every document of an input. It returns one Document per object and per error, in the
// order of the input; an unreadable document does not affect the others. An empty input returns no
// documents.
func Parse(schemas configstore.Schemas, data []byte, opts Options) []Document {
	return slices.Collect(documents(schemas, data, opts))
}

// documents yields what Parse returns, and holds the tree of one document at a time.
func documents(schemas configstore.Schemas, data []byte, opts Options) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		texts, err := Texts(schemas, data, opts)
		if err != nil {
			yield(Document{Err: err})
			return
		}
		var p parser
		for _, t := range texts {
			p.in, p.docs = t.in, p.docs[:0]
			p.text(t)
			for _, doc := range p.docs {
				if !yield(doc) {
					return
				}
			}
		}
	}
}

// ParseAll is Parse for callers to whom an error anywhere is an error: it
// returns all objects, or nil and the errors of all documents, joined.
func ParseAll(schemas configstore.Schemas, data []byte, opts Options) ([]configstore.Config, error) {
	return collect(documents(schemas, data, opts), func(d Document) error { return d.Err })
}

// collect returns the objects of documents, or nil and the errors of all documents.
func collect(docs iter.Seq[Document], wrong func(Document) error) ([]configstore.Config, error) {
	var configs []configstore.Config
	var errs []error
	for doc := range docs {
		if err := wrong(doc); err != nil {
			errs = append(errs, err)
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
	in     *input
	number int
	docs   []Document
}

func (p *parser) text(t Text) {
	roots, problem := p.trees(t)
	for _, root := range roots {
		p.number++
		if bad := survey(root, &p.in.budget); bad != nil {
			p.fail(t, *bad)
			continue
		}
		p.object(root, "", configstore.GroupVersionKind{}, &decoder{lenient: p.in.opts.Lenient, above: t.Lines})
	}
	if problem != nil {
		p.number++
		p.fail(t, *problem)
	}
}

// add appends a document at the place of its tree.
func (p *parser) add(d *decoder, root *yaml.Node, doc Document) {
	doc.Number = p.number
	doc.Line, doc.Column = d.above+root.Line, root.Column
	doc.above, doc.node = d.above, root
	p.docs = append(p.docs, doc)
}

// fail appends a document of a text that cannot be read as a whole. The line of
// the problem counts from the beginning of the text.
func (p *parser) fail(t Text, problem Problem) {
	problem.Line += t.Lines
	doc := p.salvage(t)
	doc.Config.Spec = nil
	e := &Error{Document: p.number, Key: doc.Key, Problems: []Problem{problem}, cause: ErrMalformed}
	var unknown *Error
	if errors.As(doc.Err, &unknown) && errors.Is(unknown, configstore.ErrUnknownKind) {
		// What else is wrong with it is of no concern.
		e.Problems[0].Message, e.cause = unknown.Problems[0].Message, configstore.ErrUnknownKind
	}
	p.docs = append(p.docs, Document{
		Number: p.number, Line: problem.Line, Column: problem.Column, Key: doc.Key, Config: doc.Config, Err: e, Foreign: doc.Foreign,
	})
}
