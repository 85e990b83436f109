// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
)

// Schemas is an immutable set of kinds. The zero value is empty.
type Schemas struct{ *schemaSet }

// schemaSet is what Schemas with any kinds point to, so that they are passed in one
// word.
type schemaSet struct {
	all []Schema
	// byKind has the position in all, for the canonical kind and each alias. names
	// has the same unless there are more than it is for.
	byKind map[GroupVersionKind]int
	names  *kindTable
}

// Find returns the schema of a kind, which may be named by any of its versions.
func (s Schemas) Find(kind GroupVersionKind) (Schema, bool) {
	i, ok := s.Index(&kind)
	if !ok {
		return Schema{}, false
	}
	return s.all[i], true
}

// Index returns the position of a kind in All, which may be named by any of its
// versions: what a store keeps for each kind it can keep in a slice. The kind is a
// pointer because every read of a store begins here.
func (s Schemas) Index(kind *GroupVersionKind) (i int, ok bool) {
	if s.schemaSet == nil {
		return 0, false
	}
	if s.names != nil {
		return s.names.find(kind)
	}
	i, ok = s.byKind[*kind]
	return i, ok
}

// Has reports whether Find would find the kind.
func (s Schemas) Has(kind GroupVersionKind) bool {
	_, ok := s.Index(&kind)
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

// All returns the schemas in the order in which they were added. The caller may
// modify the slice.
func (s Schemas) All() []Schema { return slices.Clone(s.kinds()) }

func (s Schemas) kinds() []Schema {
	if s.schemaSet == nil {
		return nil
	}
	return s.all
}

// Union returns the kinds of s and those of others that s lacks, in order of
// first appearance: the first schema of a kind wins.
func (s Schemas) Union(others ...Schemas) Schemas {
	b := NewSchemasBuilder()
	for _, set := range append([]Schemas{s}, others...) {
		for _, schema := range set.kinds() {
			if _, ok := b.byKind[schema.GroupVersionKind]; !ok {
				b.insert(schema)
			}
		}
	}
	return b.Build()
}

// SchemasBuilder collects schemas. It is not safe for concurrent use. Create it
// with NewSchemasBuilder.
type SchemasBuilder struct {
	all    []Schema
	byKind map[GroupVersionKind]int
}

// NewSchemasBuilder returns an empty builder.
func NewSchemasBuilder() *SchemasBuilder {
	return &SchemasBuilder{byKind: map[GroupVersionKind]int{}}
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
		if _, ok := b.byKind[k]; ok {
			return fmt.Errorf("schema %s: version %s: %w", kind, k.Version, ErrAlreadyExists)
		}
	}
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
	out := &schemaSet{all: slices.Clone(b.all), byKind: maps.Clone(b.byKind)}
	if len(b.byKind) <= len(kindTable{}) {
		out.names = &kindTable{}
		for kind, i := range b.byKind {
			out.names.add(kind, i)
		}
	}
	return Schemas{out}
}

func (b *SchemasBuilder) insert(s Schema) {
	for _, k := range s.versions() {
		if _, ok := b.byKind[k]; !ok {
			b.byKind[k] = len(b.all)
		}
	}
	s.scan = sync.OnceValues(func() (spec, status *textScanner) {
		if s.Status != nil {
			status = newTextScanner(s.Status)
		}
		return newTextScanner(s.Spec), status
	})
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

// kindTable finds the positions of kinds. Every read of a store begins with such a
// search. As there are few kinds it mostly compares one name, where a map would hash
// three strings (BenchmarkFind).
type kindTable [128]*kindName

// kindName is one name of a kind, in a list of those with the same slot.
type kindName struct {
	kind  GroupVersionKind
	index int
	next  *kindName
}

func (t *kindTable) add(kind GroupVersionKind, index int) {
	slot := &t[t.slot(&kind)]
	*slot = &kindName{kind, index, *slot}
}

func (t *kindTable) find(kind *GroupVersionKind) (index int, ok bool) {
	for n := t[t.slot(kind)]; n != nil; n = n.next {
		if n.kind == *kind {
			return n.index, true
		}
	}
	return 0, false
}

// slot hashes the lengths and two letters, which distinguish the kinds of a mesh; a
// collision costs one more comparison.
func (*kindTable) slot(kind *GroupVersionKind) uint {
	n := uint(len(kind.Kind))
	if n == 0 {
		return 0
	}
	return (n<<2 + uint(len(kind.Version)) + uint(kind.Kind[0])*5 + uint(kind.Kind[n-1])*3) % uint(len(kindTable{}))
}
