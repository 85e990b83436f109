// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

// view is one kind at the time of a snapshot. It is immutable, but that its list
// is made when it is asked for first.
type view struct {
	objects objects
	all     capture
	list    atomic.Pointer[list]
}

// freeze returns the kind as it is. The store's lock must be held.
func (k *kind) freeze() *view {
	if k.frozen == nil {
		k.frozen = &view{objects: k.objects.Snapshot(), all: k.all.capture(false)}
	}
	return k.frozen
}

// items returns the sorted list of all namespaces.
func (v *view) items() []*configstore.Config {
	if l := v.list.Load(); l != nil {
		return l.items
	}
	l := v.all.update(v.objects.Entry, v.objects)
	v.list.Store(l)
	return l.items
}

// update returns the list of the captured state. get finds its objects; all is
// needed if there is no list to begin with.
func (c capture) update(get func(key) *entry, all objects) *list {
	if c.list == nil {
		return &list{items: sorted(all), revision: c.last}
	}
	l := &list{items: c.list.items, revision: c.last}
	if len(c.pending) > 0 {
		l.items = merge(l.items, resolve(c.pending, get))
	}
	return l
}

// resolveLocked is how many pending keys are looked up under the store's lock.
// More of them are looked up in a snapshot, at the price of some copying by the
// writes that follow.
const resolveLocked = 32

// refresh brings a scope's list up to date and returns it. mu is the store's lock.
func (k *kind) refresh(sc *scope, mu *sync.Mutex) *list {
	mu.Lock()
	c := sc.capture(true)
	if !c.stale() {
		mu.Unlock()
		return c.list
	}
	var l *list
	if c.list != nil && len(c.pending) <= resolveLocked {
		changes := resolve(c.pending, k.objects.Entry)
		mu.Unlock()
		l = &list{items: merge(c.list.items, changes), revision: c.last}
	} else {
		frozen := k.objects.Snapshot()
		mu.Unlock()
		l = c.update(frozen.Entry, frozen)
	}
	mu.Lock()
	defer mu.Unlock()
	c.install(l)
	return l
}
