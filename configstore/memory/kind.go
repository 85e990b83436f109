// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// kind is the part of a store that holds the objects of one kind.
type kind struct {
	schema configstore.Schema
	// shape is the schema without rules: it checks names, scopes and types.
	shape configstore.Schema
	// mirror is Options.Mirror.
	mirror bool
	lists  *listing.Lists

	// The fields below are written under the store's lock.

	// objects is read without the lock.
	objects pmap.Live[key, object]
	// frozen is the kind as of its last snapshot, or nil if it has changed since.
	frozen *view
}

func newKind(schema configstore.Schema, mirror bool, mu sync.Locker) *kind {
	k := &kind{schema: schema, shape: schema, mirror: mirror}
	k.shape.Validate = nil
	k.lists = listing.New(mu, k)
	return k
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
	grown := 0
	if o.exists() {
		grown++
	}
	if before.exists() {
		grown--
	}
	last := uint64(0)
	if before.exists() {
		last = before.revision
	}
	k.lists.Note(e.Key, listing.Change{Grown: grown, Revision: o.revision, Last: last})
	k.frozen = nil
	o.prev.Store(before)
	k.objects.Put(e)
}

// finish ends what install began, once the revision is committed.
func (k *kind) finish(e *entry) {
	e.Value.prev.Store(nil)
	if !e.Value.exists() {
		k.objects.Delete(e.Key)
		k.lists.Drop(e.Key.Namespace)
	}
}

// Get implements listing.Source.
func (k *kind) Get(at key) *configstore.Config { return configOf(k.objects.Entry(at)) }

// Each implements listing.Source.
func (k *kind) Each(yield func(*configstore.Config) bool) { k.snapshot().Each(yield) }

// Freeze implements listing.Source.
func (k *kind) Freeze() listing.Objects { return k.snapshot() }

func (k *kind) snapshot() objects { return objects{k.objects.Snapshot()} }
