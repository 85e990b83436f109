// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// list is the list of one namespace, or of all. The package comment has its
// invariants. The zero value is that of no objects.
type list struct {
	// fresh is the list, or nil if it has to be made. It is read without a lock.
	fresh atomic.Pointer[Version]
	// making is held by the goroutine that makes the list. It is taken before the
	// store's lock, and that of a namespace before that of all.
	making sync.Mutex

	// The fields below are guarded by the store's lock.

	// made is the last list that was made, without the changes in pending.
	made []*configstore.Config
	// pending are the keys that have changed since, each at least once. The first taken of them are
	// being merged by the goroutine that holds making.
	pending []Key
	taken   int
	state   validity
	// room is the capacity of pending beyond minRoom: twice the number of objects when the list was
	// last made.
	room int
	// objects is the number of objects.
	objects int
	// revision is that of the last noted change. since is the value of revision when the last
	// making of the list began: an object that has changed after it is in pending, beyond taken.
	revision, since uint64
}

// validity is the state of made and pending.
type validity int

const (
	// kept: made with pending taken in is the list.
	kept validity = iota
	// lost: they are worthless, because too much was pending.
	lost
	// remaking means that the lost list is being made, and that pending has the changes meanwhile.
	remaking
)

// minRoom is how many keys are remembered of the smallest list.
const minRoom limit.Size = 64

func (l *list) note(k Key, c Change) {
	if l.fresh.Load() != nil {
		l.fresh.Store(nil)
	}
	l.revision = max(l.revision, c.Revision)
	l.objects += c.Grown
	if l.state == lost || c.Last > l.since {
		return
	}
	l.pending = append(l.pending, k)
	if len(l.pending) > l.room+minRoom.Get() {
		l.shorten()
	}
}

// shorten removes duplicates from pending. If that leaves more than half of what
// may be pending, so that it would soon have to be done again, the list is lost.
func (l *list) shorten() {
	later := slices.Clone(l.pending[l.taken:])
	slices.SortFunc(later, Key.Compare)
	l.pending = append(slices.Clip(l.pending[:l.taken]), slices.Compact(later)...)
	if len(l.pending) > (l.room+minRoom.Get())/2 {
		l.lose()
	}
}

func (l *list) lose() {
	l.made, l.pending, l.taken, l.state = nil, nil, 0, lost
}

func (l *list) capture() Capture {
	return Capture{l.made, slices.Clip(l.pending), l.state != kept, l.revision}
}

// begin starts the making of the list. It returns the state to merge, and later changes are
// remembered in pending.
func (l *list) begin() Capture {
	c := l.capture()
	l.taken = len(l.pending)
	l.room, l.since = 2*l.objects, l.revision
	if l.state == lost {
		l.state = remaking
	}
	return c
}

// install ends what begin started: items become the last list.
func (l *list) install(items []*configstore.Config, revision uint64) *Version {
	v := &Version{items, revision}
	if l.state == lost {
		return v // too much was noted meanwhile
	}
	l.made, l.state = items, kept
	l.pending = slices.Clone(l.pending[l.taken:])
	l.taken = 0
	if len(l.pending) == 0 {
		l.fresh.Store(v)
	}
	return v
}

// close ends the life of a namespace's list, as a list without objects: a reader that still has it
// must not find objects that the namespace gets later, because these are noted in another list. A
// goroutine that is making the list finds the key of the last object in pending, and therefore does
// not replace fresh.
func (l *list) close() {
	l.fresh.Store(&Version{Revision: l.revision})
}
