// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"
)

// ConfigOf is a Config whose spec has the type T. Like a Config it is passed by
// value, and what it points to is shared and read-only: Clone it to change it.
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

// Config returns the object in its untyped form.
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

// StoreOf is a ConfigStore seen as a store of one kind, whose specs have the type
// T. It holds nothing of its own: what is written through it is in the store, and
// the promises are those of the store.
type StoreOf[T proto.Message] struct {
	store ConfigStore
	kind  GroupVersionKind
}

// Typed returns the view of the kind whose specs have the type T, for example
// Typed[*networking.ServiceEntry](store). It panics if the store's schemas have
// no kind of that type, or more than one: that is a programming error, and
// TypedKind is for the latter.
func Typed[T proto.Message](store ConfigStore) *StoreOf[T] {
	var found []GroupVersionKind
	for _, schema := range store.Schemas().all {
		if _, ok := schema.Spec.(T); ok {
			found = append(found, schema.GroupVersionKind)
		}
	}
	switch len(found) {
	case 0:
		panic(fmt.Sprintf("configstore: Typed: the store has no kind with specs of type %T", *new(T)))
	case 1:
		return TypedKind[T](store, found[0])
	default:
		panic(fmt.Sprintf("configstore: Typed: the store has several kinds with specs of type %T: %v; use TypedKind", *new(T), found))
	}
}

// TypedKind is Typed for a kind that is named, by any of its versions. It panics
// if the store has no such kind or if its specs have another type than T.
func TypedKind[T proto.Message](store ConfigStore, kind GroupVersionKind) *StoreOf[T] {
	schema, ok := store.Schemas().Find(kind)
	if !ok {
		panic(fmt.Sprintf("configstore: TypedKind: the store has no kind %s", kind))
	}
	if _, ok := schema.Spec.(T); !ok {
		panic(fmt.Sprintf("configstore: TypedKind: specs of %s have the type %T, not %T", kind, schema.Spec, *new(T)))
	}
	return &StoreOf[T]{store: store, kind: schema.GroupVersionKind}
}

// Kind returns the kind, in its canonical version.
func (s *StoreOf[T]) Kind() GroupVersionKind { return s.kind }

// Get returns the stored object, and false if there is none.
func (s *StoreOf[T]) Get(name, namespace string) (ConfigOf[T], bool) {
	c := s.store.Get(s.kind, name, namespace)
	if c == nil {
		return ConfigOf[T]{}, false
	}
	return typed[T](*c), true
}

// List returns the objects of a namespace, or all of them for NamespaceAll,
// sorted by namespace and name. The slice is the caller's. All saves making it.
func (s *StoreOf[T]) List(namespace string) []ConfigOf[T] {
	list := s.store.List(s.kind, namespace)
	if len(list) == 0 {
		return nil
	}
	out := make([]ConfigOf[T], len(list))
	for i, c := range list {
		out[i] = typed[T](*c)
	}
	return out
}

// All iterates over what List returns: the objects at the time of the iteration's
// start, whatever happens to the store meanwhile.
func (s *StoreOf[T]) All(namespace string) iter.Seq[ConfigOf[T]] {
	return func(yield func(ConfigOf[T]) bool) {
		for _, c := range s.store.List(s.kind, namespace) {
			if !yield(typed[T](*c)) {
				return
			}
		}
	}
}

// Create stores a new object and returns its revision. The object's kind is the
// view's, whatever its Meta says.
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

// Delete removes an object. A non-nil resourceVersion must be the stored one.
func (s *StoreOf[T]) Delete(name, namespace string, resourceVersion *string) error {
	return s.store.Delete(s.kind, name, namespace, resourceVersion)
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
