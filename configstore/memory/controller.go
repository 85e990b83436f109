// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Controller is a Store with event handlers. It embeds the Store, and adds the handlers and the
// queue of their events. NewController creates it. Run, Drain or Flush call the handlers.
type Controller struct {
	*Store
	// logger may be nil.
	logger *slog.Logger
	queue  *notify.Queue[configstore.Change]
	// source is what RegisterHasSyncedHandler was given.
	source atomic.Pointer[func() bool]
}

var (
	_ configstore.ConfigStoreCache = (*Controller)(nil)
	_ configstore.Subscriber       = (*Controller)(nil)
	_ configstore.Watcher          = (*Controller)(nil)
	_ configstore.Drainer          = (*Controller)(nil)
	_ configstore.Flusher          = (*Controller)(nil)
)

// NewController returns a controller of a store. A store may have
// several; each delivers every change to its own handlers.
func NewController(store *Store, opts ...ControllerOptions) *Controller {
	o := options.One("memory.NewController", opts)
	c := &Controller{Store: store, logger: o.Logger}
	queue := notify.Options[configstore.Change]{Name: "memory", SlowAfter: o.SlowHandler, Panicked: c.panicked}
	if c.logger != nil {
		queue.Slow = c.slow // without it no call is measured
	}
	c.queue = notify.New(queue)
	store.mu.Lock()
	defer store.mu.Unlock()
	store.queues = append(store.queues, c.queue)
	return c
}

// RegisterEventHandler implements ConfigStoreCache.
func (c *Controller) RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler) {
	c.subscribe(c.canonical("RegisterEventHandler", kind), c.single(handler), true)
}

// Subscribe implements Subscriber.
func (c *Controller) Subscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	kinds = c.canonical("Subscribe", kinds...)
	at, cancel := c.subscribe(kinds, c.batch(handler), false)
	for _, kind := range kinds {
		objects = append(objects, at.List(kind, configstore.NamespaceAll)...)
	}
	return objects, cancel
}

// RegisterHasSyncedHandler lets a source of the store's content that does not register
// itself (RegisterSource) hold back HasSynced of this controller until hasSynced returns
// true, which it does once all of the initial state is in the store. Call it before the
// first HasSynced. It replaces an earlier one; nil holds nothing back. hasSynced is called
// with no lock held, from any goroutine.
func (c *Controller) RegisterHasSyncedHandler(hasSynced func() bool) { c.source.Store(&hasSynced) }

// HasSynced implements ConfigStoreCache. It is false until the first Run, Drain or Flush, and until
// all known sources of the store have synced: the sources passed to RegisterSource, and the
// functions passed to RegisterHasSyncedHandler. Without either, the content at that time is the
// initial state.
func (c *Controller) HasSynced() bool { return c.queue.HasSynced(c.filled) }

// Pending implements configstore.PendingSyncer: it names the sources that have not synced.
func (c *Controller) Pending() string {
	if !c.queue.Started() {
		return notRunning
	}
	return configstore.Pending(c.sources.all()...)
}

const notRunning = "Run has not been called"

// filled reports whether all of the initial state is in the store.
func (c *Controller) filled() bool {
	if source := c.source.Load(); source != nil && *source != nil && !(*source)() {
		return false
	}
	return c.sources.haveSynced()
}

// Run implements ConfigStoreCache. When it has returned, the handlers get nothing
// any more, also not by Drain; the store continues.
func (c *Controller) Run(stop <-chan struct{}) {
	c.queue.Run(stop)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues = slices.DeleteFunc(c.queues, func(q *notify.Queue[configstore.Change]) bool { return q == c.queue })
}

// Drain implements configstore.Drainer.
func (c *Controller) Drain() {
	c.awaitCommit()
	c.queue.Drain()
}

// Flush implements configstore.Flusher.
func (c *Controller) Flush(ctx context.Context) error {
	c.awaitCommit()
	if err := c.queue.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

func (c *Controller) single(handler configstore.EventHandler) notify.Subscription[configstore.Change] {
	if handler == nil {
		return notify.Subscription[configstore.Change]{} // which the queue refuses
	}
	return notify.Subscription[configstore.Change]{Handle: func(change configstore.Change) {
		var old configstore.Config
		if change.Old != nil {
			old = *change.Old
		}
		handler(old, *change.Curr, change.Event)
		if c.opts.DetectMutations {
			c.kind(&change.Curr.GroupVersionKind).verify(change.Curr)
		}
	}}
}

func (c *Controller) batch(handler configstore.BatchHandler) notify.Subscription[configstore.Change] {
	if handler == nil || !c.opts.DetectMutations {
		return notify.Subscription[configstore.Change]{Batch: handler}
	}
	return notify.Subscription[configstore.Change]{Batch: func(changes []configstore.Change) {
		given := slices.Clone(changes) // the slice is the handler's
		handler(changes)
		for _, change := range given {
			c.kind(&change.Curr.GroupVersionKind).verify(change.Curr)
		}
	}}
}

// canonical returns kinds in their canonical versions, each once. It panics if one is
// unknown.
func (c *Controller) canonical(method string, kinds ...configstore.GroupVersionKind) []configstore.GroupVersionKind {
	out := make([]configstore.GroupVersionKind, 0, len(kinds))
	for _, kind := range kinds {
		k := c.kind(&kind)
		if k == nil {
			panic(fmt.Sprintf("memory: %s: %v", method, c.Schemas().UnknownKind(kind, nil)))
		}
		if !slices.Contains(out, k.gvk()) {
			out = append(out, k.gvk())
		}
	}
	return out
}

// subscribe registers a handler for all commits after the snapshot that it returns. If replayed
// is true, the handler also gets the objects of the snapshot.
func (c *Controller) subscribe(
	kinds []configstore.GroupVersionKind, sub notify.Subscription[configstore.Change], replayed bool,
) (at *Snapshot, cancel func()) {
	sub.Wants = func(change configstore.Change) bool {
		return slices.Contains(kinds, change.Curr.GroupVersionKind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at = c.snapshotLocked()
	if replayed {
		sub.Replay = replay(at, kinds)
	}
	return at, c.queue.Subscribe(sub)
}

// replay yields the objects of a snapshot as Adds.
func replay(snap *Snapshot, kinds []configstore.GroupVersionKind) iter.Seq[configstore.Change] {
	return func(yield func(configstore.Change) bool) {
		for _, kind := range kinds {
			for _, c := range snap.List(kind, configstore.NamespaceAll) {
				if !yield(configstore.Change{Event: configstore.EventAdd, Curr: c, Revision: snap.revisionOf(c)}) {
					return
				}
			}
		}
	}
}

func (c *Controller) panicked(p *guard.PanicError, first configstore.Change, n int) {
	p.Log(c.logger, "event handler", slog.Int("events", n),
		slog.String("event", first.Event.String()), slog.String("object", first.Curr.Key().Object()))
}

func (c *Controller) slow(took time.Duration, first configstore.Change, n int) {
	c.logger.Warn("event handler is slow",
		slog.Duration("took", took), slog.Int("events", n),
		slog.String("event", first.Event.String()), slog.String("object", first.Curr.Key().Object()))
}
