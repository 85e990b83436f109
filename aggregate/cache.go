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
	"github.com/pilotkit/pilotkit/internal/kindindex"
	"github.com/pilotkit/pilotkit/internal/listing"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Cache is many config caches as one. Of objects with the same key, that of the
// first member is seen, and the others are as if they did not exist, in reads and
// in events alike. The package comment says how fresh its reads are. Create it
// with MakeCache or MakeWriteableCache.
//
// It keeps a view of each kind, the merged content, and a queue. Whatever changes a
// view pushes its events with the same lock held, so that both are in one order, and
// those of one batch at once, so that handlers of batches get them together.
// Changes come from the members' events and, of members that are Watchers, from
// reads that find them behind; the revision up to which a member's changes have been
// applied says what the slower of the two has to leave out.
type Cache struct {
	schemas configstore.Schemas
	writer  configstore.ConfigStore
	members []*member
	views   []*view         // in the order of schemas
	index   kindindex.Index // of views
	queue   *notify.Queue[configstore.Change]
	logger  *slog.Logger // may be nil
	ran     atomic.Bool
	// taken counts how often something was taken from a member.
	taken atomic.Uint64

	// mu guards the views, but for their reads, and puts what it changes into the
	// queue in the same order.
	mu sync.Mutex
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.BatchSubscriber  = (*Cache)(nil)
	_ configstore.ListSubscriber   = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	// Logger gets an error for each call of a handler that panicked, with the stack.
	// The default, nil, discards.
	Logger *slog.Logger
}

// MakeCache returns a read-only cache of caches, the most important first. Its
// kinds are all of theirs; if two have the same kind, the first schema counts.
// Run runs the caches, so nothing else should. A Cache is a subscriber of its
// members for as long as they live.
func MakeCache(caches ...configstore.ConfigStoreCache) *Cache {
	return MakeWriteableCache(caches, nil)
}

// MakeWriteableCache is MakeCache with a store that takes the writes, unchanged,
// and gives their results; it need not be one of the caches. What it stores is
// seen as far as it is, or feeds, one of the caches, and none before it in the
// order has the same key. Nil makes a read-only cache. More than one CacheOptions
// panic.
func MakeWriteableCache(
	caches []configstore.ConfigStoreCache, writer configstore.ConfigStore, opts ...CacheOptions,
) *Cache {
	o := options.One("aggregate.MakeWriteableCache", opts)
	var schemas configstore.Schemas
	for _, cache := range caches {
		schemas = schemas.Union(cache.Schemas())
	}
	c := &Cache{
		schemas: schemas, writer: writer, logger: o.Logger,
		queue: notify.New(notify.Options[configstore.Change]{
			Name: "aggregate",
			Panicked: func(p *guard.PanicError, first configstore.Change, n int) {
				p.Log(o.Logger, "event handler", slog.Int("events", n),
					slog.String("event", first.Event.String()), slog.String("object", first.Curr.Key().Object()))
			},
		}),
	}
	for i, schema := range schemas.All() {
		c.index.Add(i, kindindex.Name(schema.GroupVersionKind), schema.Aliases...)
		c.views = append(c.views, newView(schema.GroupVersionKind, &c.mu))
	}
	for i, cache := range caches {
		c.members = append(c.members, newMember(i, cache, c.view))
	}
	for _, m := range c.members {
		m.subscribe(c.feed)
		c.reload(m)
	}
	return c
}

// view returns the view of a kind, named by any version, or nil.
func (c *Cache) view(kind *configstore.GroupVersionKind) *view {
	if i, ok := c.index.Find((*kindindex.Name)(kind)); ok {
		return c.views[i]
	}
	return nil
}

// Schemas returns the kinds of all members.
func (c *Cache) Schemas() configstore.Schemas { return c.schemas }

// Get implements ConfigStore. Unless a member has changed since the last read it
// takes no lock and allocates nothing, whatever the number of members.
func (c *Cache) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	v := c.view(&kind)
	if v == nil {
		return nil
	}
	c.refresh()
	return v.Get(listing.Key{Namespace: namespace, Name: name})
}

// List implements ConfigStore. Without a change in between the next call returns
// the same slice, takes no lock and allocates nothing.
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
// all members' Run has.
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
	members.Wait() // not deferred: it would hold up a panic that passes
}

// HasSynced reports whether all members have, and every handler registered
// before the first Run, Drain or Flush has processed what they delivered.
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

// Pending implements configstore.PendingSyncer: it describes the members that have not synced.
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

// Drain implements configstore.Drainer: it handles what is queued in the members
// that are Drainers, and then here, until nothing is left in any of them.
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

// Flush implements configstore.Flusher. Of members that are neither Flushers nor
// Watchers it waits for what they have delivered.
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
