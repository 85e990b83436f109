// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/kindindex"
)

// Schemas is an immutable set of kinds. The zero value is empty.
type Schemas struct{ *schemaSet }

// schemaSet is what Schemas with any kinds point to, so that they are passed in one
// word.
type schemaSet struct {
	all   []Schema
	index *kindindex.Index // of all
}

// Find returns the schema of a kind, which may be named by any of its versions.
func (s Schemas) Find(kind GroupVersionKind) (Schema, bool) {
	i, ok := s.Position(&kind)
	if !ok {
		return Schema{}, false
	}
	return s.all[i], true
}

// Position returns the position of a kind in All, so that a store can keep its data per kind in a slice. The
// kind may be named by any of its versions. It is a pointer because it is long, and each read of a store
// begins with such a lookup.
func (s Schemas) Position(kind *GroupVersionKind) (i int, ok bool) {
	if s.schemaSet == nil {
		return 0, false
	}
	return s.index.Find((*kindindex.Name)(kind))
}

// Has reports whether Find would find the kind.
func (s Schemas) Has(kind GroupVersionKind) bool {
	_, ok := s.Position(&kind)
	return ok
}

// KindOf returns the kind, in its canonical version, whose specs have the type of
// a message. It returns false if there is none or more than one.
func (s Schemas) KindOf(spec proto.Message) (kind GroupVersionKind, ok bool) {
	if spec == nil {
		return kind, false
	}
	for _, schema := range s.kinds() {
		if sameType(schema.Spec, spec) {
			if ok {
				return GroupVersionKind{}, false
			}
			kind, ok = schema.GroupVersionKind, true
		}
	}
	return kind, ok
}

// All returns the schemas in the order of their addition. The caller may modify the slice.
func (s Schemas) All() []Schema { return slices.Clone(s.kinds()) }

func (s Schemas) kinds() []Schema {
	if s.schemaSet == nil {
		return nil
	}
	return s.all
}

// Union returns the kinds of s and the kinds of others that s lacks, in order of first appearance:
// the first schema of a kind wins.
func (s Schemas) Union(others ...Schemas) Schemas {
	b := NewSchemasBuilder()
	for _, set := range append([]Schemas{s}, others...) {
		for _, schema := range set.kinds() {
			if !b.has(schema.GroupVersionKind) {
				b.insert(schema)
			}
		}
	}
	return b.Build()
}

// SchemasBuilder collects schemas. It is not safe for concurrent use. Create it
// with NewSchemasBuilder.
type SchemasBuilder struct {
	all   []Schema
	index *kindindex.Index // of all
}

// NewSchemasBuilder returns an empty builder.
func NewSchemasBuilder() *SchemasBuilder {
	return &SchemasBuilder{index: &kindindex.Index{}}
}

// Add adds a schema. It returns an error if the schema lacks a kind, a version or
// a spec type, or if one of its versions was added before.
func (b *SchemasBuilder) Add(s Schema) error {
	kind := s.GroupVersionKind
	switch {
	case kind.Kind == "" || kind.Version == "":
		return fmt.Errorf("schema %s: %w", kind, errors.New("kind and version are required"))
	case s.Spec == nil:
		return fmt.Errorf("schema %s: %w", kind, errors.New("a spec type is required"))
	}
	for _, k := range s.versions() {
		if b.has(k) {
			return fmt.Errorf("schema %s: version %s: %w", kind, k.Version, ErrAlreadyExists)
		}
	}
	s.added = &addedSchema{}
	b.insert(s)
	return nil
}

// MustAdd is Add for schemas that are known to be right: it panics on an error.
// It returns the builder.
func (b *SchemasBuilder) MustAdd(s Schema) *SchemasBuilder {
	if err := b.Add(s); err != nil {
		panic("configstore: " + err.Error())
	}
	return b
}

// Build returns the schemas added so far. The builder may be used further.
func (b *SchemasBuilder) Build() Schemas {
	out := &schemaSet{all: slices.Clone(b.all), index: &kindindex.Index{}}
	for i, schema := range out.all {
		out.index.Add(i, kindindex.Name(schema.GroupVersionKind), schema.Aliases...)
	}
	return Schemas{out}
}

func (b *SchemasBuilder) has(kind GroupVersionKind) bool {
	_, ok := b.index.Find((*kindindex.Name)(&kind))
	return ok
}

func (b *SchemasBuilder) insert(s Schema) {
	b.index.Add(len(b.all), kindindex.Name(s.GroupVersionKind), s.Aliases...)
	b.all = append(b.all, s)
}

// versions returns the kind in its canonical version, then in its aliases.
func (s Schema) versions() []GroupVersionKind {
	out := []GroupVersionKind{s.GroupVersionKind}
	for _, v := range s.Aliases {
		k := s.GroupVersionKind
		k.Version = v
		out = append(out, k)
	}
	return out
}
