// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// Objects are the objects of a kind.
type Objects interface {
	// Get returns the object of a key, or nil.
	Get(k Key) *configstore.Config
	// Each calls yield with every object until it returns false, in any order.
	Each(yield func(*configstore.Config) bool)
}

// Source is where Lists find the objects of their store. Its methods are called
// with the store's lock held.
type Source interface {
	Objects
	// Freeze returns the present objects for use without the lock; nil if the
	// store cannot: the lock is then held for as long as they are read.
	Freeze() Objects
}

// Version is a list as it was between two changes. It is immutable.
type Version struct {
	// Items is nil if there are none.
	Items []*configstore.Config
	// Revision is at least that of the last change that Items has.
	Revision uint64
}

// Change is one change of an object.
type Change struct {
	// Grown is by how much it changes the number of objects: 1, 0 or -1.
	Grown int
	// Revision is that of the change. It may be lower than one that was noted
	// before if both become visible at once.
	Revision uint64
	// Last is the revision of the object's previous change, 0 if the object did not exist or if the
	// revision is unknown. It avoids remembering a key twice.
	Last uint64
}

// Lists are the sorted lists of the objects of one kind. The package comment
// explains them. Create them with New.
type Lists struct {
	mu      sync.Locker
	objects Source
	all     list
	// namespaces are read without the lock.
	namespaces pmap.Live[string, *list]
}

// New returns the lists of a store without objects, whose writers have the lock
// mu.
func New(mu sync.Locker, objects Source) *Lists { return &Lists{mu: mu, objects: objects} }

// Note announces a change of an object that is about to become visible. The
// store's lock must be held.
func (ls *Lists) Note(k Key, c Change) {
	ls.all.note(k, c)
	l, _ := ls.namespaces.Get(k.Namespace)
	if l == nil {
		l = &list{}
		ls.namespaces.Set(k.Namespace, l)
	}
	l.note(k, c)
}

// Drop removes the list of a namespace if it has no objects any more. The store's
// lock must be held, and the changes that were noted be visible.
func (ls *Lists) Drop(namespace string) {
	if l, _ := ls.namespaces.Get(namespace); l != nil && l.objects == 0 {
		ls.namespaces.Delete(namespace)
		l.close()
	}
}

// List returns the objects of a namespace, or of all for configstore.NamespaceAll. It returns nil
// if a namespace has none. It takes no lock if nothing has changed since the last call.
func (ls *Lists) List(namespace string) *Version {
	l := &ls.all
	if namespace != configstore.NamespaceAll {
		if l, _ = ls.namespaces.Get(namespace); l == nil {
			return nil
		}
	}
	if v := l.fresh.Load(); v != nil {
		return v
	}
	return ls.refresh(l, namespace)
}

// refresh is List for a list that was not fresh a moment ago.
func (ls *Lists) refresh(l *list, namespace string) *Version {
	l.making.Lock()
	defer l.making.Unlock()
	ls.mu.Lock()
	if v := l.fresh.Load(); v != nil {
		ls.mu.Unlock()
		return v
	}
	c := l.begin()
	if !c.lost || l == &ls.all {
		items := ls.make(c)
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return l.install(items, c.revision)
	}
	ls.mu.Unlock()
	// The list of all namespaces is at least as new as c. Its newer changes are in pending too, and
	// merging them again changes nothing.
	part := published(slices.Clone(InNamespace(ls.refresh(&ls.all, configstore.NamespaceAll).Items, namespace)))
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return l.install(part, l.revision)
}

// make returns the list of a captured state. It is called with the store's lock
// held and returns without.
func (ls *Lists) make(c Capture) []*configstore.Config {
	var objects Objects = ls.objects
	if c.lost || len(c.pending) > resolveLocked.Get() {
		if frozen := ls.objects.Freeze(); frozen != nil {
			ls.mu.Unlock()
			return c.List(frozen)
		}
	}
	if c.lost {
		items := slices.Collect(objects.Each)
		ls.mu.Unlock()
		return sorted(items)
	}
	changes := resolve(c.pending, objects)
	ls.mu.Unlock()
	return merge(c.made, changes)
}

// resolveLocked is how many pending keys are looked up under the store's lock.
// More of them are looked up among frozen objects, at the price of some copying by
// the writes that follow.
const resolveLocked limit.Size = 32

// Capture is the list of all at one moment, to be made later or never.
type Capture struct {
	made     []*configstore.Config
	pending  []Key
	lost     bool
	revision uint64
}

// Capture returns the current state of the list of all namespaces, in constant time. The store's
// lock must be held.
func (ls *Lists) Capture() Capture { return ls.all.capture() }

// List returns the captured list. objects must be those of the time of the capture.
func (c Capture) List(objects Objects) []*configstore.Config {
	switch {
	case c.lost:
		return sorted(slices.Collect(objects.Each))
	case len(c.pending) == 0:
		return c.made
	default:
		return merge(c.made, resolve(c.pending, objects))
	}
}
