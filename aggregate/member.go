// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configfeed"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// member is one of the caches of a Cache.
type member struct {
	index int
	cache configstore.ConfigStoreCache
	// watcher is nil if the member's changes are known from its events alone.
	watcher configstore.Watcher
	// kinds are the member's kinds, by its name for them.
	kinds map[configstore.GroupVersionKind]*view

	// applied is the revision up to which the views have the member's changes.
	// It is written under the cache's lock.
	applied atomic.Uint64
}

// newMember returns a member for which the views have nothing. viewOf returns the
// view of a kind.
func newMember(index int, cache configstore.ConfigStoreCache, viewOf func(*configstore.GroupVersionKind) *view) *member {
	m := &member{index: index, cache: cache, kinds: map[configstore.GroupVersionKind]*view{}}
	m.watcher, _ = configstore.As[configstore.Watcher](cache)
	for _, schema := range cache.Schemas().All() {
		m.kinds[schema.GroupVersionKind] = viewOf(&schema.GroupVersionKind)
	}
	return m
}

// stale reports whether the member has changes that the views lack.
func (m *member) stale() bool {
	return m.watcher != nil && m.watcher.Revision() != m.applied.Load()
}

// subscribe has feed called with all changes. It is called without a lock.
func (m *member) subscribe(feed func(*member, []configstore.Change)) {
	kinds := make([]configstore.GroupVersionKind, 0, len(m.kinds))
	for _, schema := range m.cache.Schemas().All() {
		kinds = append(kinds, schema.GroupVersionKind)
	}
	configfeed.Subscribe(m.cache, kinds, func(changes []configstore.Change) { feed(m, changes) })
}

// maxExpected is for how many changes room is made before it is known whether the
// history has them.
const maxExpected limit.Size = 256

// since returns the member's changes after a revision, up to the present one. It
// is called without a lock. The error is that of Watch.
func (m *member) since(revision uint64) ([]configstore.Change, error) {
	target := m.watcher.Revision()
	if target <= revision {
		return nil, nil
	}
	changes := make([]configstore.Change, 0, min(target-revision, uint64(maxExpected.Get())))
	// The watch ends at a revision that is committed: it has nothing to wait for.
	for c, err := range m.watcher.Watch(context.Background(), revision) { //nolint:forbidigo // a read has no context
		if err != nil {
			return nil, err
		}
		if changes = append(changes, c); c.Revision >= target {
			break
		}
	}
	return changes, nil
}

// contents are a member's objects as of a revision.
type contents struct {
	revision uint64
	objects  map[*view]*objects
}

// objects are those of one kind. The keys are those of the list, in its order, and
// then those that appeared while it was read; a key without an object has lost it.
type objects struct {
	keys  []listing.Key
	byKey map[listing.Key]*configstore.Config
}

func (o *objects) set(k listing.Key, c *configstore.Config) {
	if _, known := o.byKey[k]; !known {
		o.keys = append(o.keys, k)
	}
	o.byKey[k] = c
}

// load reads a member whole. It is called without a lock.
func (m *member) load() contents {
	for {
		c := contents{objects: map[*view]*objects{}}
		if m.watcher != nil {
			c.revision = m.watcher.Revision()
		}
		for kind, v := range m.kinds {
			list := m.cache.List(kind, configstore.NamespaceAll)
			if c.objects[v] == nil { // a member may have a kind under two names
				c.objects[v] = &objects{make([]listing.Key, 0, len(list)), make(map[listing.Key]*configstore.Config, len(list))}
			}
			for _, config := range list {
				c.objects[v].set(listing.KeyOf(config), config)
			}
		}
		if m.watcher == nil {
			return c
		}
		// What changed meanwhile may or may not be in the lists. With all these
		// changes laid over them they are the state after the last one.
		changes, err := m.since(c.revision)
		if errors.Is(err, configstore.ErrCompacted) {
			continue // so much that the lists have to be read again
		}
		for _, change := range changes {
			c.revision = change.Revision
			config := change.Curr
			if change.Event == configstore.EventDelete {
				config = nil
			}
			if v := m.kinds[change.Curr.GroupVersionKind]; v != nil {
				c.objects[v].set(listing.KeyOf(change.Curr), config)
			}
		}
		return c
	}
}
