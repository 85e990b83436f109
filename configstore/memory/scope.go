// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

// scope keeps the sorted list of the objects of one kind in one namespace, or in
// all of them. Writers only note which keys have changed; the list is brought up
// to date when somebody asks for it, by copying the last one with the changes
// merged in. All but list is guarded by the store's lock.
type scope struct {
	// list is the newest list. Nil, which it is only in the scope of all
	// namespaces, means that it has to be made from the objects.
	list atomic.Pointer[list]

	// noting is set if changes are noted in pending.
	noting bool
	// pending are the keys that have changed since list was made, each at least
	// once. It is only appended to, and replaced: whoever has a copy may read it
	// without the lock.
	pending []key
	// mark is the revision of the last capture. A key is noted if its last change
	// is not newer: otherwise it has been noted since.
	mark uint64
	// last is the revision of the last change.
	last uint64
	// replaced counts how often pending was replaced, but for install.
	replaced int
	// len is the number of objects.
	len int
}

// newScope returns the scope of a namespace that gets its first object with a
// revision. Its list is never exact: the namespace may have had objects before.
func newScope(revision uint64) *scope {
	sc := &scope{noting: true}
	sc.list.Store(&list{revision: revision})
	return sc
}

// list is the state of a scope between two revisions.
type list struct {
	items []*configstore.Config
	// revision is that of the last change in items.
	revision uint64
	// until is the revision of the first change that items lacks, or 0. It is set
	// before that change is committed.
	until atomic.Uint64
}

// current reports whether no change up to a revision is missing.
func (l *list) current(revision uint64) bool {
	until := l.until.Load()
	return until == 0 || until > revision
}

// exact reports whether the list is the state at a revision.
func (l *list) exact(revision uint64) bool {
	return l.revision <= revision && l.current(revision)
}

// What may be pending, in multiples of the number of objects now and in the list,
// and besides, before pending is made shorter.
const (
	pendingFactor = 2
	pendingMin    = 64
)

// change notes a change that is about to be committed. It returns false if too
// much is pending.
func (sc *scope) change(at key, revision uint64, before *object) bool {
	sc.last = max(sc.last, revision) // a batch is not installed in the order of its revisions
	if !sc.noting {
		return true
	}
	l := sc.list.Load()
	if l != nil && l.until.Load() == 0 {
		l.until.Store(revision)
	}
	if before.exists() && before.revision > sc.mark {
		return true
	}
	sc.pending = append(sc.pending, at)
	return len(sc.pending) <= pendingFactor*(sc.len+len(l.configs()))+pendingMin
}

// forget makes the scope of all namespaces one that nobody lists.
func (sc *scope) forget() {
	sc.list.Store(nil)
	sc.noting = false
	sc.pending = nil
	sc.replaced++
}

// close ends the life of a namespace's scope with the empty list: who still has it
// must not find what the namespace gets later.
func (sc *scope) close() {
	sc.list.Store(&list{revision: sc.last})
	sc.noting = false
	sc.pending = nil
	sc.replaced++
}

// compact drops keys that are pending twice, or of objects that came and went
// since the list was made.
func (sc *scope) compact(k *kind) {
	items := sc.list.Load().configs()
	seen := make(map[key]struct{}, sc.len)
	var kept []key
	for _, at := range sc.pending {
		if _, ok := seen[at]; ok {
			continue
		}
		seen[at] = struct{}{}
		_, listed := slices.BinarySearchFunc(items, at, compareKey)
		if listed || k.objects.Entry(at) != nil {
			kept = append(kept, at)
		}
	}
	sc.pending = kept
	sc.replaced++
}

// capture is what is needed to bring a list up to date without the store's lock.
type capture struct {
	scope    *scope
	list     *list
	pending  []key
	noted    bool
	replaced int
	last     uint64
}

// capture returns the scope's state. If note is set, what changes from now on is
// noted, and what is made from the capture can be installed.
func (sc *scope) capture(note bool) capture {
	if note {
		sc.noting = true
	}
	sc.mark = sc.last
	return capture{sc, sc.list.Load(), slices.Clip(sc.pending), sc.noting, sc.replaced, sc.last}
}

// stale reports whether the captured list is not that of the captured state.
func (c capture) stale() bool { return c.list == nil || c.list.until.Load() != 0 }

// install makes l, which was made from c, the scope's list, unless there is
// another one by now. The store's lock must be held.
func (c capture) install(l *list) {
	sc := c.scope
	if !c.noted || sc.list.Load() != c.list || sc.replaced != c.replaced {
		return
	}
	sc.pending = slices.Clone(sc.pending[len(c.pending):])
	if sc.last != c.last {
		l.until.Store(c.last + 1) // at the earliest
	}
	sc.list.Store(l)
}

func (l *list) configs() []*configstore.Config {
	if l == nil {
		return nil
	}
	return l.items
}
