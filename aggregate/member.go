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
	// watcher is nil if events are the only source of the member's changes.
	watcher configstore.Watcher
	// kinds maps the member's own version of each kind to the view.
	kinds map[configstore.GroupVersionKind]*view

	// applied is the last revision of the member that the views contain. It is written under the
	// cache's lock.
	applied atomic.Uint64
}

// newMember returns a member whose objects are not in the views yet. viewOf returns the view of a
// kind.
func newMember(
	index int, cache configstore.ConfigStoreCache, schemas configstore.Schemas, viewOf func(*configstore.GroupVersionKind) *view,
) *member {
	m := &member{index: index, cache: cache, kinds: map[configstore.GroupVersionKind]*view{}}
	m.watcher, _ = configstore.As[configstore.Watcher](cache)
	for _, schema := range schemas.All() {
		m.kinds[schema.GroupVersionKind] = viewOf(&schema.GroupVersionKind)
	}
	return m
}

// stale reports whether the member has changes that the views lack.
func (m *member) stale() bool {
	return m.watcher != nil && m.watcher.Revision() != m.applied.Load()
}

// subscribe subscribes feed to all changes. The caller must not hold a lock.
func (m *member) subscribe(feed func(*member, []configstore.Change)) {
	kinds := make([]configstore.GroupVersionKind, 0, len(m.kinds))
	for _, schema := range m.cache.Schemas().All() {
		kinds = append(kinds, schema.GroupVersionKind)
	}
	configfeed.Subscribe(m.cache, kinds, func(changes []configstore.Change) { feed(m, changes) })
}

// maxExpected limits the capacity that is allocated before the number of changes is known.
const maxExpected limit.Size = 256

// since returns the member's changes from a revision up to the present one. The caller must not
// hold a lock. The error comes from Watch.
func (m *member) since(revision uint64) ([]configstore.Change, error) {
	target := m.watcher.Revision()
	if target <= revision {
		return nil, nil
	}
	changes := make([]configstore.Change, 0, min(target-revision, uint64(maxExpected.Get())))
	// The watch ends at a committed revision, so it does not block.
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

// contents are a member's objects at a revision. The object of a key is nil if it was deleted while the
// objects were read.
type contents struct {
	revision uint64
	objects  map[*view]map[listing.Key]*configstore.Config
}

// load reads the whole content of a member. The caller must not hold a lock.
func (m *member) load() contents {
	for {
		c := contents{objects: map[*view]map[listing.Key]*configstore.Config{}}
		if m.watcher != nil {
			c.revision = m.watcher.Revision()
		}
		for kind, v := range m.kinds {
			list := m.cache.List(kind, configstore.NamespaceAll)
			if c.objects[v] == nil { // a member may have a kind in two versions
				c.objects[v] = make(map[listing.Key]*configstore.Config, len(list))
			}
			for _, config := range list {
				c.objects[v][listing.KeyOf(config)] = config
			}
		}
		if m.watcher == nil {
			return c
		}
		// The lists may or may not contain the changes made meanwhile. With all of these changes
		// applied, they are the state after the last one.
		changes, err := m.since(c.revision)
		if errors.Is(err, configstore.ErrCompacted) {
			continue // the history was too short, so read the lists again
		}
		for _, change := range changes {
			c.revision = change.Revision
			config := change.Curr
			if change.Event == configstore.EventDelete {
				config = nil
			}
			if v := m.kinds[change.Curr.GroupVersionKind]; v != nil {
				c.objects[v][listing.KeyOf(change.Curr)] = config
			}
		}
		return c
	}
}
