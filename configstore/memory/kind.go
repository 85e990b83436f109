// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// kind is the part of a store that holds the objects of one kind.
type kind struct {
	schema configstore.Schema
	// shape is the schema without rules: it checks names, scopes and types.
	shape configstore.Schema
	// index is the position in kinds.all and Snapshot.views.
	index int

	// What follows is written under the store's lock. The maps are read without.

	objects pmap.Live[key, object]
	// scopes are the namespaces that have objects.
	scopes pmap.Live[string, *scope]
	all    scope
	// frozen is the kind as of its last snapshot, or nil if it has changed since.
	frozen *view
}

func newKind(schema configstore.Schema, index int) *kind {
	shape := schema
	shape.Validate = nil
	return &kind{schema: schema, shape: shape, index: index}
}

// gvk is the kind's name in its canonical version.
func (k *kind) gvk() configstore.GroupVersionKind { return k.schema.GroupVersionKind }

// get returns an object as of a committed revision, or nil if it does not exist.
func (k *kind) get(at key, revision uint64) *object {
	e := k.objects.Entry(at)
	if e == nil {
		return nil
	}
	if o := e.Value.at(revision); o.exists() {
		return o
	}
	return nil
}

// install puts a version into the maps, to be seen once its revision is
// committed. before is the committed version or the absent one.
func (k *kind) install(e *entry, before *object) {
	o := &e.Value
	o.prev.Store(before)
	k.objects.Put(e)
	sc, _ := k.scopes.Get(e.Key.namespace)
	if sc == nil {
		sc = newScope(o.revision)
		k.scopes.Set(e.Key.namespace, sc)
	}
	grown := 0
	if o.exists() {
		grown++
	}
	if before.exists() {
		grown--
	}
	sc.len += grown
	if !sc.change(e.Key, o.revision, before) {
		sc.compact(k)
	}
	k.all.len += grown
	if !k.all.change(e.Key, o.revision, before) {
		k.all.forget()
	}
	k.frozen = nil
}

// settle ends what install began, once the revision is committed.
func (k *kind) settle(e *entry) {
	e.Value.prev.Store(nil)
	if e.Value.exists() {
		return
	}
	k.objects.Delete(e.Key)
	if sc, _ := k.scopes.Get(e.Key.namespace); sc != nil && sc.len == 0 {
		k.scopes.Delete(e.Key.namespace)
		sc.close()
	}
}

// scope returns the scope of a namespace, or of all, or nil if a namespace has no
// objects.
func (k *kind) scope(namespace string) *scope {
	if namespace == configstore.NamespaceAll {
		return &k.all
	}
	sc, _ := k.scopes.Get(namespace)
	return sc
}
