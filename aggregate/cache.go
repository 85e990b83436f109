// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/listing"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Cache presents several config caches as one. If several members have an object with the same key,
// reads and events show only the object of the first of these members. The package comment
// describes the freshness of reads. Create a Cache with MakeCache or MakeWriteableCache.
//
// It keeps a view of each kind, with the merged content, and a queue. Each change of a view pushes
// its events under the same lock, so views and events have the same order. The events of one batch
// are pushed together, so handlers of batches get them together. Changes come from events of the
// members and, for members that are Watchers, from reads that find the view stale. The applied
// revision of a member prevents a change from being applied twice.
type Cache struct {
	schemas configstore.Schemas
	writer  configstore.ConfigStore
	members []*member
	views   []*view // in the order of schemas
	queue   *notify.Queue[configstore.Change]
	logger  *slog.Logger // may be nil
	ran     atomic.Bool
	// taken counts the updates that were taken from members.
	taken atomic.Uint64

	// mu guards the writes to views, and keeps views and queue in one order. Reads of a view need
	// no lock.
	mu sync.Mutex
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	// Logger gets an error, with the stack, for each panic of a handler. The default, nil,
	// discards.
	Logger *slog.Logger
}

// MakeCache returns a read-only cache that merges caches in order of precedence. Its schemas are
// the union of their schemas; for a kind that several caches have, the first schema wins. Run runs
// the caches, so the caller must not run them. A Cache stays subscribed to its members as long as
// they exist.
func MakeCache(caches ...configstore.ConfigStoreCache) *Cache {
	return MakeWriteableCache(caches, nil)
}

// MakeWriteableCache is MakeCache with a store for writes. The Cache passes writes to the store
// unchanged and returns its results. The store need not be one of the caches. Reads show a written
// object if the store is, or feeds, one of the caches, and no earlier cache has the same key. A nil
// store makes the Cache read-only. MakeWriteableCache panics if there is more than one
// CacheOptions.
func MakeWriteableCache(
	caches []configstore.ConfigStoreCache, writer configstore.ConfigStore, opts ...CacheOptions,
) *Cache {
	var schemas configstore.Schemas
	for _, cache := range caches {
		schemas = schemas.Union(cache.Schemas())
	}
	c := newCache(schemas, caches, options.One("aggregate.MakeWriteableCache", opts))
	c.writer = writer
	for _, m := range c.members {
		m.subscribe(c.feed)
		c.reload(m)
	}
	return c
}

// newCache returns a cache that is not subscribed to its members.
func newCache(schemas configstore.Schemas, caches []configstore.ConfigStoreCache, o CacheOptions) *Cache {
	c := &Cache{
		schemas: schemas, logger: o.Logger,
		queue: notify.New(notify.Options[configstore.Change]{
			Name: "aggregate",
			Panicked: func(p *guard.PanicError, first configstore.Change, n int) {
				p.Log(o.Logger, "event handler", slog.Int("events", n),
					slog.String("event", first.Event.String()), slog.String("object", first.Curr.Key().Object()))
			},
		}),
	}
	for _, schema := range schemas.All() {
		c.views = append(c.views, newView(schema.GroupVersionKind, &c.mu))
	}
	for i, cache := range caches {
		c.members = append(c.members, newMember(i, cache, cache.Schemas(), c.view))
	}
	return c
}

// view returns the view of a kind, given in any version, or nil.
func (c *Cache) view(kind *configstore.GroupVersionKind) *view {
	if i, ok := c.schemas.Position(kind); ok {
		return c.views[i]
	}
	return nil
}

// Schemas returns the kinds of all members.
func (c *Cache) Schemas() configstore.Schemas { return c.schemas }

// Get implements ConfigStore. If no member has changed since the last read, it takes no lock and
// allocates nothing, for any number of members.
func (c *Cache) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	v := c.view(&kind)
	if v == nil {
		return nil
	}
	c.refresh()
	return v.Get(listing.Key{Namespace: namespace, Name: name})
}

// List implements ConfigStore. Without a change since the last call, it returns the same slice,
// takes no lock and allocates nothing.
func (c *Cache) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	v := c.view(&kind)
	if v == nil {
		return nil
	}
	c.refresh()
	if list := v.lists.List(namespace); list != nil {
		return list.Items
	}
	return nil
}

// Create implements ConfigStore with the store for writes.
func (c *Cache) Create(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", c.readOnly("create", &config)
	}
	return c.writer.Create(config)
}

// Update implements ConfigStore with the store for writes.
func (c *Cache) Update(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", c.readOnly("update", &config)
	}
	return c.writer.Update(config)
}

// UpdateStatus implements ConfigStore with the store for writes.
func (c *Cache) UpdateStatus(config configstore.Config) (revision string, err error) {
	if c.writer == nil {
		return "", c.readOnly("update status of", &config)
	}
	return c.writer.UpdateStatus(config)
}

// Delete implements ConfigStore with the store for writes.
func (c *Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	if c.writer == nil {
		return c.readOnly("delete", &configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Name: name, Namespace: namespace}})
	}
	return c.writer.Delete(kind, name, namespace, resourceVersion)
}

// readOnly returns the error of a write without a store for it. A config without a kind has the
// kind of its spec.
func (c *Cache) readOnly(verb string, config *configstore.Config) error {
	key := config.Key()
	if key.Kind == (configstore.GroupVersionKind{}) {
		key.Kind, _ = c.schemas.KindOf(config.Spec)
	}
	return fmt.Errorf("%s %s: %w", verb, key.Object(), configstore.ErrReadOnly)
}

// Run runs all members and delivers events until stop is closed. It returns when Run of each member
// has returned. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	if c.ran.Swap(true) {
		panic("aggregate: Run called twice")
	}
	var members sync.WaitGroup
	for _, m := range c.members {
		members.Go(func() {
			if p := guard.Call(func() { m.cache.Run(stop) }); p != nil {
				p.Log(c.logger, "Run of a cache", slog.Int("member", m.index))
			}
		})
	}
	c.queue.Run(stop)
	members.Wait() // not deferred, because it would delay a panic
}

// HasSynced reports whether all members have synced and every handler registered before the first
// Run, Drain or Flush has processed the events that the members delivered.
func (c *Cache) HasSynced() bool {
	return c.queue.HasSynced(func() bool {
		for _, m := range c.members {
			if !m.cache.HasSynced() {
				return false
			}
		}
		c.refresh()
		return true
	})
}

// Pending implements configstore.PendingSyncer. It describes the members that have not synced.
func (c *Cache) Pending() string {
	var members []configstore.Syncer
	for _, m := range c.members {
		members = append(members, m.cache)
	}
	if pending := configstore.Pending(members...); pending != "" || c.queue.Started() {
		return pending
	}
	return "Run has not been called"
}

// Drain implements configstore.Drainer. It drains the members that are Drainers, and then its own
// queue, until all of these queues are empty.
func (c *Cache) Drain() {
	for {
		taken := c.taken.Load()
		for _, m := range c.members {
			if d, ok := configstore.As[configstore.Drainer](m.cache); ok {
				d.Drain()
			}
		}
		c.refresh()
		c.queue.Drain()
		if c.queue.Idle() && c.taken.Load() == taken {
			return
		}
	}
}

// Flush implements configstore.Flusher. For a member that is neither a Flusher nor a Watcher, it
// waits for the events that the member has delivered.
func (c *Cache) Flush(ctx context.Context) error {
	for _, m := range c.members {
		if f, ok := configstore.As[configstore.Flusher](m.cache); ok {
			if err := f.Flush(ctx); err != nil {
				return fmt.Errorf("flush: %w", err)
			}
		}
	}
	c.refresh() //nolint:contextcheck // it waits for nothing
	if err := c.queue.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
