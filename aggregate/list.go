// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

func (k key) compare(l key) int {
	return cmp.Or(strings.Compare(k.namespace, l.namespace), strings.Compare(k.name, l.name))
}

func compareKey(c *configstore.Config, k key) int { return keyOf(c).compare(k) }

// list keeps the sorted list of a namespace, or of all. A change only notes its
// key; who asks next pays for a copy with the noted changes merged in.
type list struct {
	// fresh is the list, or nil if it has to be made.
	fresh atomic.Pointer[[]*configstore.Config]

	// What follows is guarded by the cache's lock.

	// made is the list as it was before the changes of pending.
	made    []*configstore.Config
	pending []key
	// lost: made is worthless, because too much was pending.
	lost bool
	// objects is the number of objects in a namespace; of all nobody counts them.
	objects int
}

// pendingMin is how many changes are always noted.
const pendingMin = 64

// note takes notice of a change.
func (l *list) note(k key) {
	l.fresh.Store(nil)
	switch {
	case l.lost:
	case len(l.pending) > len(l.made)+pendingMin:
		l.made, l.pending, l.lost = nil, nil, true
	default:
		l.pending = append(l.pending, k)
	}
}

// refresh makes the list if need be. get finds the objects of noted keys, all
// returns the sorted list of everything.
func (l *list) refresh(get func(key) *configstore.Config, all func() []*configstore.Config) []*configstore.Config {
	if fresh := l.fresh.Load(); fresh != nil {
		return *fresh
	}
	if l.lost {
		l.made = all()
	} else {
		l.made = merge(l.made, l.pending, get)
	}
	l.pending, l.lost = nil, false
	if len(l.made) == 0 {
		l.made = nil
	}
	made := l.made
	l.fresh.Store(&made)
	return made
}

// merge returns a new list: items with the changed keys brought up to date.
func merge(items []*configstore.Config, changed []key, get func(key) *configstore.Config) []*configstore.Config {
	slices.SortFunc(changed, key.compare)
	changed = slices.Compact(changed)
	out := make([]*configstore.Config, 0, len(items)+len(changed))
	for _, k := range changed {
		i, found := slices.BinarySearchFunc(items, k, compareKey)
		out = append(out, items[:i]...)
		if c := get(k); c != nil {
			out = append(out, c)
		}
		if found {
			i++
		}
		items = items[i:]
	}
	return append(out, items...)
}
