// SPDX-License-Identifier: Apache-2.0

package aggregate

import "github.com/pilotkit/pilotkit/configstore"

// refresh brings the views up to date with the members that can tell what they
// have changed since, and reports whether they are.
func (c *Cache) refresh() (current bool) {
	current = true
	for _, m := range c.members {
		current = c.catchUp(m) && current
	}
	return current
}

// catchUp is refresh for one member. If its history does not go back far enough,
// the views fall behind until its events, which have every change, have come.
func (c *Cache) catchUp(m *member) (current bool) {
	return !m.stale() || c.pull(m) || c.reloadUnheard(m)
}

// pull applies what a member has changed since the last time, if its history goes
// back that far.
func (c *Cache) pull(m *member) bool {
	changes, err := m.since(m.applied.Load())
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyLocked(m, changes)
	return true
}

// feed takes the changes that a member delivers. Those that a read has pulled
// before are not applied again.
func (c *Cache) feed(m *member, changes []configstore.Change) {
	c.fed.Inc()
	if m.numbered != nil && len(changes) > 0 && changes[0].Revision == 0 {
		// The member does not number its events: they say that there is something.
		if !c.pull(m) {
			c.reload(m)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyLocked(m, changes)
}

// applyLocked applies changes of a member, in their order.
func (c *Cache) applyLocked(m *member, changes []configstore.Change) {
	applied := m.applied.Load()
	for _, change := range changes {
		if m.numbered != nil {
			if change.Revision <= applied {
				continue
			}
			applied = change.Revision
		}
		config := change.Curr
		if change.Event == configstore.EventDelete {
			config = nil
		}
		c.setLocked(m, m.kinds[change.Curr.GroupVersionKind], keyOf(change.Curr), config)
	}
	// Last, because reads that find nothing new take no lock.
	m.applied.Store(applied)
}

// setLocked takes the state of an object in a member; nil: it has none.
func (c *Cache) setLocked(m *member, v *view, k key, config *configstore.Config) {
	if v == nil {
		return
	}
	if config != nil {
		config = v.canonical(config)
	}
	if change, ok := v.set(m.index, k, config); ok {
		c.queue.Push(change)
	}
}

// reload compares the views with all that a member has. Handlers are told of the
// difference, and not of what was in between.
func (c *Cache) reload(m *member) {
	now := m.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaceLocked(m, now)
}

// reloadUnheard is reload, if there are no handlers.
func (c *Cache) reloadUnheard(m *member) bool {
	if c.queue.Subscribed() {
		return false
	}
	now := m.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.Subscribed() {
		return false
	}
	c.replaceLocked(m, now)
	return true
}

// replaceLocked takes all that a member has, unless somebody else was faster.
func (c *Cache) replaceLocked(m *member, now contents) {
	if now.revision < m.applied.Load() {
		return
	}
	for v, objects := range now.objects {
		for _, k := range v.keysOf(m.index) {
			if objects[k] == nil {
				c.setLocked(m, v, k, nil)
			}
		}
		for k, config := range objects {
			c.setLocked(m, v, k, config)
		}
	}
	m.applied.Store(now.revision)
}
