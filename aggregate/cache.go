// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/notify"
)

// Cache is many config caches as one. Of objects with the same key, that of the
// first member is seen, and the others are as if they did not exist, in reads and
// in events alike. The package comment says how fresh its reads are. Create it
// with MakeCache or MakeWriteableCache.
type Cache struct {
	schemas configstore.Schemas
	writer  configstore.ConfigStore
	members []*member
	views   *views
	queue   *notify.Queue[configstore.Change]
	ran     atomic.Bool
	// fed counts what members have delivered.
	fed atomic.Uint64

	// mu guards the views, but for their reads, and puts what it changes into the
	// queue in the same order.
	mu sync.Mutex
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.BatchSubscriber  = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// MakeCache returns a read-only cache of caches, the most important first. Its
// kinds are all of theirs; if two have the same kind, the first schema counts.
// Run runs the caches, so nobody else should. A Cache that is made is known to
// its members for as long as they live.
func MakeCache(caches ...configstore.ConfigStoreCache) *Cache {
	return MakeWriteableCache(caches, nil)
}

// MakeWriteableCache is MakeCache with a store that takes the writes, unchanged,
// and gives their results; it need not be one of the caches. What it stores is
// seen as far as it is, or feeds, one of the caches, and none before it in the
// order has the same key. Nil makes a read-only cache.
func MakeWriteableCache(caches []configstore.ConfigStoreCache, writer configstore.ConfigStore) *Cache {
	var schemas configstore.Schemas
	for _, cache := range caches {
		schemas = schemas.Union(cache.Schemas())
	}
	c := &Cache{
		schemas: schemas, writer: writer, views: newViews(schemas),
		queue: notify.New(notify.Options[configstore.Change]{Name: "aggregate"}),
	}
	for i, cache := range caches {
		c.members = append(c.members, newMember(i, cache, c.views))
	}
	for _, m := range c.members {
		m.subscribe(c.feed)
		c.reload(m)
	}
	return c
}

// Schemas returns the kinds of all members.
func (c *Cache) Schemas() configstore.Schemas { return c.schemas }

// Get implements ConfigStore. Unless a member has changed since the last read it
// takes no lock and allocates nothing, whatever the number of members.
func (c *Cache) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	v := c.views.find(&kind)
	if v == nil {
		return nil
	}
	k := key{namespace, name}
	if !c.refresh() {
		return c.find(v, k)
	}
	return v.winners.get(k)
}

// List implements ConfigStore. Without a change in between the next call returns
// the same slice, takes no lock and allocates nothing.
func (c *Cache) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	v := c.views.find(&kind)
	if v == nil {
		return nil
	}
	if !c.refresh() {
		return c.gather(v, namespace)
	}
	if list, ok := v.fresh(namespace); ok {
		return list
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return v.list(namespace)
}

// Create implements ConfigStore by the writer.
func (c *Cache) Create(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", readOnly("create", config.Key())
	}
	return c.writer.Create(config)
}

// Update implements ConfigStore by the writer.
func (c *Cache) Update(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", readOnly("update", config.Key())
	}
	return c.writer.Update(config)
}

// UpdateStatus implements ConfigStore by the writer.
func (c *Cache) UpdateStatus(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", readOnly("update status of", config.Key())
	}
	return c.writer.UpdateStatus(config)
}

// Delete implements ConfigStore by the writer.
func (c *Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	if c.writer == nil {
		return readOnly("delete", configstore.ConfigKey{Kind: kind, Name: name, Namespace: namespace})
	}
	return c.writer.Delete(kind, name, namespace, resourceVersion)
}

func readOnly(verb string, key configstore.ConfigKey) error {
	return fmt.Errorf("%s %s: %w", verb, key.Object(), configstore.ErrReadOnly)
}

// RegisterEventHandler implements ConfigStoreCache.
func (c *Cache) RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler) {
	c.Subscribe(kind, handler)
}

// Run runs all members and delivers events until stop is closed; it returns when
// all members' Run has. A handler's panic is Run's, and leaves the members running
// until stop is closed.
func (c *Cache) Run(stop <-chan struct{}) {
	if c.ran.Swap(true) {
		panic("aggregate: Run called twice")
	}
	var members sync.WaitGroup
	for _, m := range c.members {
		members.Go(func() { m.cache.Run(stop) })
	}
	c.queue.Run(stop)
	members.Wait() // not deferred: it would hold up a handler's panic
}

// HasSynced reports whether all members have, and every handler registered
// before the first Run or Drain has processed what they delivered.
func (c *Cache) HasSynced() bool {
	return c.queue.HasSynced(func() bool {
		for _, m := range c.members {
			if !m.cache.HasSynced() {
				return false
			}
		}
		return true
	})
}

// Drain handles, on the caller's goroutine, everything that is queued in the
// members that have a Drain method and then here, until nothing is left. Use it
// instead of Run.
func (c *Cache) Drain() {
	for {
		fed := c.fed.Load()
		for _, m := range c.members {
			if d, ok := m.cache.(interface{ Drain() }); ok {
				d.Drain()
			}
		}
		c.refresh()
		c.queue.Drain()
		if c.fed.Load() == fed {
			return
		}
	}
}

// Flush waits until everything that was committed before the call, in the
// members that have revisions or a Flush method, has been handled by the running
// worker. It returns the cause of ctx's end if that comes first, or an error if
// Run has ended. A handler must not call it: it would wait for itself.
func (c *Cache) Flush(ctx context.Context) error {
	for _, m := range c.members {
		if m.numbered != nil && c.catchUp(m) { //nolint:contextcheck // it waits for nothing
			continue
		}
		f, ok := m.cache.(interface {
			Flush(ctx context.Context) error
		})
		if !ok {
			continue
		}
		if err := f.Flush(ctx); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	if err := c.queue.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
