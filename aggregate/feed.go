// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// refresh brings the views up to date with the members that are Watchers. For other members, the
// views are up to date with their events.
func (c *Cache) refresh() {
	for _, m := range c.members {
		c.catchUp(m)
	}
}

// catchUp is refresh for one member. It applies the missing changes from the history of the member.
// If the history is too short, it compares the views with the whole content of the member.
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

// reload takes the whole content of a member. Handlers are notified of the difference, but not of
// intermediate states.
func (c *Cache) reload(m *member) {
	now := m.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.revision < m.applied.Load() {
		return // another goroutine has applied a newer state
	}
	var changes []configstore.Change
	for _, v := range c.views {
		objects := now.objects[v] // nil if the member does not have the kind
		keys := slices.AppendSeq(v.keysOf(m.index), maps.Keys(objects))
		slices.SortFunc(keys, listing.Key.Compare)
		for _, k := range slices.Compact(keys) {
			changes = m.appendSet(changes, v, k, objects[k])
		}
	}
	c.queue.Push(changes...)
	c.taken.Inc()
	m.applied.Store(now.revision)
}

// feed applies the changes that a member delivers, unless a read has already applied them.
func (c *Cache) feed(m *member, changes []configstore.Change) {
	if m.watcher != nil && changes[0].Revision == 0 {
		c.catchUp(m) // events without a revision only signal a change
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyLocked(m, changes)
}

// applyLocked applies changes of a member in their order. It skips changes that the views already
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
		seen = m.appendChange(seen, change)
	}
	c.queue.Push(seen...)
	c.taken.Inc()
	// Stored last, because a read that finds the revision applied takes no lock.
	m.applied.Store(applied)
}

// appendChange is appendSet for a change of the member.
func (m *member) appendChange(changes []configstore.Change, change configstore.Change) []configstore.Change {
	v, config := m.kinds[change.Curr.GroupVersionKind], change.Curr
	if v == nil {
		return changes
	}
	if change.Event == configstore.EventDelete {
		config = nil
	}
	return m.appendSet(changes, v, listing.KeyOf(change.Curr), config)
}

// appendSet sets the state of an object in the member, or removes it if config is nil, and appends
// the resulting change of the merged content. The cache's lock must be held.
func (m *member) appendSet(changes []configstore.Change, v *view, k listing.Key, config *configstore.Config) []configstore.Change {
	if config != nil {
		config = v.canonical(config)
	}
	if change, ok := v.set(m.index, k, config); ok {
		changes = append(changes, change)
	}
	return changes
}
