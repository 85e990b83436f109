// SPDX-License-Identifier: Apache-2.0

package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// store is the store of a Source's reflector.
type store Source

var _ cache.TransformingStore = (*store)(nil)

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	if o, ok := object.(metav1.Object); ok {
		s.opts.Apply([]Change{s.set(o)})
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	if o, ok := object.(metav1.Object); ok {
		delete(s.known, nameOf(o))
		s.opts.Apply([]Change{{Object: o, Gone: true}})
	}
	return nil
}

// Replace implements cache.ReflectorStore. It passes the list on as one batch.
func (s *store) Replace(objects []any, _ string) error {
	gone := s.known
	s.known = make(map[name]struct{}, len(objects))
	changes := make([]Change, 0, len(objects))
	for i, object := range objects {
		if o, ok := object.(metav1.Object); ok {
			delete(gone, nameOf(o))
			changes = append(changes, s.set(o))
		}
		objects[i] = nil
	}
	for n := range gone {
		changes = append(changes, Change{Object: &metav1.ObjectMeta{Namespace: n.namespace, Name: n.name}, Gone: true})
	}
	s.opts.Apply(changes)
	(*Source)(s).finish()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		s.trim(object)
		return object, nil
	}
}

func (s *store) trim(object any) {
	if o, ok := object.(runtime.Object); ok && s.opts.Trim != nil {
		s.opts.Trim(o)
	}
}

func (s *store) set(o metav1.Object) Change {
	s.trim(o)
	s.known[nameOf(o)] = struct{}{}
	return Change{Object: o}
}

func nameOf(o metav1.Object) name { return name{o.GetNamespace(), o.GetName()} }
