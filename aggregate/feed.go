// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// refresh brings the views up to date with the members that are Watchers. Those of
// the others are up to date with their events, always.
func (c *Cache) refresh() {
	for _, m := range c.members {
		c.catchUp(m)
	}
}

// catchUp is refresh for one member. It takes the changes that the views lack from
// the member's history or, if that does not go back so far, compares the views with
// all that the member has.
func (c *Cache) catchUp(m *member) {
	if !m.stale() {
		return
	}
	if changes, err := m.since(m.applied.Load()); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.applyLocked(m, changes)
		return
	}
	c.reload(m)
}

// reload takes all that a member has. Handlers are notified of the difference, and
// not of what was in between.
func (c *Cache) reload(m *member) {
	now := m.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.revision < m.applied.Load() {
		return // another goroutine was faster, and the views are newer than now
	}
	var changes []configstore.Change
	for _, v := range c.views {
		objects := now.objects[v]
		if objects == nil {
			continue // the member does not have the kind
		}
		for _, k := range v.keysOf(m.index) {
			if objects.byKey[k] == nil {
				changes = m.appendSet(changes, v, k, nil)
			}
		}
		for _, k := range objects.keys {
			if config := objects.byKey[k]; config != nil {
				changes = m.appendSet(changes, v, k, config)
			}
		}
	}
	c.queue.Push(changes...)
	c.taken.Inc()
	m.applied.Store(now.revision)
}

// feed takes the changes that a member delivers, unless a read was faster.
func (c *Cache) feed(m *member, changes []configstore.Change) {
	if m.watcher != nil && changes[0].Revision == 0 {
		c.catchUp(m) // the events are not numbered: they say that there is something
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyLocked(m, changes)
}

// applyLocked applies changes of a member, in their order, but those that the views
// have.
func (c *Cache) applyLocked(m *member, changes []configstore.Change) {
	applied := m.applied.Load()
	var seen []configstore.Change
	for _, change := range changes {
		if m.watcher != nil {
			if change.Revision <= applied {
				continue
			}
			applied = change.Revision
		}
		config := change.Curr
		if change.Event == configstore.EventDelete {
			config = nil
		}
		if v := m.kinds[change.Curr.GroupVersionKind]; v != nil {
			seen = m.appendSet(seen, v, listing.KeyOf(change.Curr), config)
		}
	}
	c.queue.Push(seen...)
	c.taken.Inc()
	// Last, because reads that find nothing new take no lock.
	m.applied.Store(applied)
}

// appendSet takes the state of an object in the member, nil: it has none, and appends
// what that means for the merged content. The cache's lock must be held.
func (m *member) appendSet(changes []configstore.Change, v *view, k listing.Key, config *configstore.Config) []configstore.Change {
	if config != nil {
		config = v.canonical(config)
	}
	if change, ok := v.set(m.index, k, config); ok {
		changes = append(changes, change)
	}
	return changes
}
