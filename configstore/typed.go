// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"
)

// ConfigOf is a Config whose spec has the type T. Like a Config it is passed by value, and its maps
// and messages are shared and read-only: Clone it to change it.
type ConfigOf[T proto.Message] struct {
	Meta
	// Spec is nil only in the zero value, which handlers get for "no object".
	Spec T
	// Status may be nil.
	Status proto.Message
}

// NewConfig returns an object to be created. What else Meta holds, labels for
// example, may be set on the result.
func NewConfig[T proto.Message](name, namespace string, spec T) ConfigOf[T] {
	return ConfigOf[T]{Meta: Meta{Name: name, Namespace: namespace}, Spec: spec}
}

// Config returns the object in its untyped form. Its kind may be empty, as that of
// a new one: stores find it by the type of the spec.
func (c ConfigOf[T]) Config() Config {
	out := Config{Meta: c.Meta, Status: c.Status}
	// A nil pointer must not become an interface that is not nil.
	if m := proto.Message(c.Spec); m != nil && m.ProtoReflect().IsValid() {
		out.Spec = c.Spec
	}
	return out
}

// Clone returns a deep copy, which the caller may modify.
func (c ConfigOf[T]) Clone() ConfigOf[T] { return typed[T](c.Config().Clone()) }

// StoreOf is a ConfigStore seen as a store of one kind, whose specs have the type T. It has no
// state of its own: writes go to the underlying store, with the guarantees of that store. Written
// objects get the kind of the view, whatever their Meta says.
type StoreOf[T proto.Message] struct {
	store ConfigStore
	kind  GroupVersionKind
}

// Typed returns the view of the kind whose specs have the type T, for example
// Typed[*networking.ServiceEntry](store). The kind, by any of its versions, may be left out if there
// is only one of that type. It panics if there is not, or if the specs of the kind have another type:
// that is a programming error.
func Typed[T proto.Message](store ConfigStore, kind ...GroupVersionKind) *StoreOf[T] {
	schemas := store.Schemas()
	switch len(kind) {
	case 0:
		k, ok := schemas.KindOf(*new(T))
		if !ok {
			panic(fmt.Sprintf("configstore: the store has no kind with specs of type %T, or several: name the kind", *new(T)))
		}
		return &StoreOf[T]{store, k}
	case 1:
		schema, ok := schemas.Find(kind[0])
		if !ok {
			panic(fmt.Sprintf("configstore: the store has no kind %s", kind[0]))
		}
		if _, ok := schema.Spec.(T); !ok {
			panic(fmt.Sprintf("configstore: specs of %s have the type %T, not %T", kind[0], schema.Spec, *new(T)))
		}
		return &StoreOf[T]{store, schema.GroupVersionKind}
	default:
		panic("configstore: more than one kind")
	}
}

// Get returns the object, and false if there is none.
func (s *StoreOf[T]) Get(name, namespace string) (ConfigOf[T], bool) {
	c := s.store.Get(s.kind, name, namespace)
	if c == nil {
		return ConfigOf[T]{}, false
	}
	return typed[T](*c), true
}

// List returns the objects of a namespace, or all of them for NamespaceAll,
// sorted by namespace and name. The slice is the caller's. Select saves making it.
func (s *StoreOf[T]) List(namespace string) []ConfigOf[T] {
	return slices.Collect(s.Select(namespace, nil))
}

// Select iterates over the objects of List whose labels include all of selector; an empty selector
// selects everything. The iteration sees the state at its start, even if the store changes
// meanwhile.
func (s *StoreOf[T]) Select(namespace string, selector map[string]string) iter.Seq[ConfigOf[T]] {
	return func(yield func(ConfigOf[T]) bool) {
		for c := range Select(s.store, s.kind, namespace, selector) {
			if !yield(typed[T](*c)) {
				return
			}
		}
	}
}

// Create stores a new object and returns its revision.
func (s *StoreOf[T]) Create(c ConfigOf[T]) (revision string, err error) {
	return s.store.Create(s.config(c))
}

// Update replaces the object of the same key, its status included, and returns
// the new revision. An object that came from Get carries its ResourceVersion: the
// update then fails with ErrConflict if the object has changed since.
func (s *StoreOf[T]) Update(c ConfigOf[T]) (revision string, err error) {
	return s.store.Update(s.config(c))
}

// UpdateStatus is Update for the Status alone.
func (s *StoreOf[T]) UpdateStatus(c ConfigOf[T]) (revision string, err error) {
	return s.store.UpdateStatus(s.config(c))
}

// Upsert is the function of that name.
func (s *StoreOf[T]) Upsert(c ConfigOf[T]) (revision string, err error) {
	return Upsert(s.store, s.config(c))
}

// Delete removes an object. A non-nil resourceVersion must be the stored one.
func (s *StoreOf[T]) Delete(name, namespace string, resourceVersion *string) error {
	return s.store.Delete(s.kind, name, namespace, resourceVersion)
}

// Mutation returns one change of a batch, for BatchWriter.Apply. For OpDelete the
// object's key and ResourceVersion are enough.
func (s *StoreOf[T]) Mutation(op Op, c ConfigOf[T]) Mutation {
	return Mutation{Op: op, Config: s.config(c)}
}

func (s *StoreOf[T]) config(c ConfigOf[T]) Config {
	c.GroupVersionKind = s.kind
	return c.Config()
}

// typed gives a Config its type. Stores hold only specs of their schemas' types,
// so that a wrong one is a defect of the store, and panics.
func typed[T proto.Message](c Config) ConfigOf[T] {
	out := ConfigOf[T]{Meta: c.Meta, Status: c.Status}
	if c.Spec != nil {
		out.Spec = c.Spec.(T)
	}
	return out
}

// TypedHandler returns an EventHandler for a kind whose specs have the type T.
func TypedHandler[T proto.Message](handler func(old, curr ConfigOf[T], event Event)) EventHandler {
	return func(old, curr Config, event Event) { handler(typed[T](old), typed[T](curr), event) }
}
