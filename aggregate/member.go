// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"iter"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

// numbered is what the aggregate needs of a member to bring itself up to date
// when it is read. Revision grows by one with each change, and Watch yields the
// changes after a revision.
type numbered interface {
	Revision() uint64
	Watch(ctx context.Context, from uint64) iter.Seq2[configstore.Change, error]
}

// member is one of the caches of a Cache.
type member struct {
	index int
	cache configstore.ConfigStoreCache
	// numbered is nil if the member can tell of its changes by events only.
	numbered numbered
	// kinds are the member's kinds, by its name for them.
	kinds map[configstore.GroupVersionKind]*view

	// applied is the revision up to which the views have the member's changes.
	// It is written under the cache's lock.
	applied atomic.Uint64
}

func newMember(index int, cache configstore.ConfigStoreCache, views *views) *member {
	m := &member{index: index, cache: cache, kinds: map[configstore.GroupVersionKind]*view{}}
	_, batches := cache.(configstore.BatchSubscriber)
	if n, ok := cache.(numbered); ok && batches {
		m.numbered = n
	}
	for _, schema := range cache.Schemas().All() {
		m.kinds[schema.GroupVersionKind] = views.find(&schema.GroupVersionKind)
	}
	return m
}

// kindsOf yields the member's names for the kind of a view.
func (m *member) kindsOf(v *view) iter.Seq[configstore.GroupVersionKind] {
	return func(yield func(configstore.GroupVersionKind) bool) {
		for kind, w := range m.kinds {
			if v == w && !yield(kind) {
				return
			}
		}
	}
}

// stale reports whether the member has changes that the views lack.
func (m *member) stale() bool {
	return m.numbered != nil && m.numbered.Revision() != m.applied.Load()
}

// subscribe has feed called with all changes. It is called without a lock.
func (m *member) subscribe(feed func(*member, []configstore.Change)) {
	if batches, ok := m.cache.(configstore.BatchSubscriber); ok {
		kinds := make([]configstore.GroupVersionKind, 0, len(m.kinds))
		for kind := range m.kinds {
			kinds = append(kinds, kind)
		}
		batches.SubscribeBatch(kinds, func(changes []configstore.Change) { feed(m, changes) })
		return
	}
	for kind := range m.kinds {
		m.cache.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
			change := configstore.Change{Event: event, Curr: &curr}
			if event == configstore.EventUpdate {
				change.Old = &old
			}
			feed(m, []configstore.Change{change})
		})
	}
}

// maxExpected is for how many changes room is made before it is known whether the
// history has them.
const maxExpected = 256

// since returns the member's changes after a revision, up to the present one. It
// is called without a lock. The error is that of Watch.
func (m *member) since(revision uint64) ([]configstore.Change, error) {
	target := m.numbered.Revision()
	if target <= revision {
		return nil, nil
	}
	changes := make([]configstore.Change, 0, min(target-revision, maxExpected))
	// The watch ends at a revision that is committed: it has nothing to wait for.
	for c, err := range m.numbered.Watch(context.Background(), revision) { //nolint:forbidigo // a read has no context
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
	objects  map[*view]map[key]*configstore.Config
}

// load reads a member whole. It is called without a lock.
func (m *member) load() contents {
	for {
		c := contents{objects: map[*view]map[key]*configstore.Config{}}
		if m.numbered != nil {
			c.revision = m.numbered.Revision()
		}
		for kind, v := range m.kinds {
			list := m.cache.List(kind, configstore.NamespaceAll)
			c.objects[v] = make(map[key]*configstore.Config, len(list))
			for _, object := range list {
				c.objects[v][keyOf(object)] = v.canonical(object)
			}
		}
		if m.numbered == nil {
			return c
		}
		// What changed meanwhile may or may not be in the lists. With all these
		// changes laid over them they are the state after the last one.
		changes, err := m.since(c.revision)
		if errors.Is(err, configstore.ErrCompacted) {
			continue
		}
		for _, change := range changes {
			m.overlay(&c, change)
		}
		return c
	}
}

func (m *member) overlay(c *contents, change configstore.Change) {
	c.revision = change.Revision
	v := m.kinds[change.Curr.GroupVersionKind]
	if v == nil {
		return
	}
	if change.Event == configstore.EventDelete {
		delete(c.objects[v], keyOf(change.Curr))
		return
	}
	c.objects[v][keyOf(change.Curr)] = v.canonical(change.Curr)
}
