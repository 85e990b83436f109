// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/internal/regularfile"
)

// Options configure a Cache. The zero value works.
type Options struct {
	// Interval is the time between two looks whether the file has to be written. The
	// default is 10 s.
	Interval time.Duration
	// HistoryLimit is that of memory.Options.
	HistoryLimit int
	// Logger gets an error when the file was rejected or cannot be written, once until a write
	// succeeds, and reports of slow and panicking handlers, as the Logger of
	// memory.ControllerOptions does. Nil discards.
	Logger *slog.Logger
}

// reads is what readers call.
type reads = reading.Cache

// Cache is a ConfigStoreCache that shows the content of another cache and, until that has synced,
// the content of the file. Create it with New.
type Cache struct {
	reads  // which is shown
	shown  *memory.Controller
	source configstore.ConfigStoreCache
	path   string
	opts   Options
	disk   disk

	// warm is set if a file was loaded. live is set when the source has synced and its content is
	// shown.
	warm, live atomic.Bool
	// started and ended are set when Run begins and ends.
	started, ended atomic.Bool

	// feeding serialises the changes of the source with the switch to live.
	feeding sync.Mutex
	// pending has the changes of the source before the switch to live. It is nil afterwards, and
	// always nil if no file was loaded.
	pending map[configstore.ConfigKey]*configstore.Config

	// saving makes one file at a time, of the revision saved.
	saving sync.Mutex
	saved  uint64

	mu     sync.Mutex
	status Status
	// refused has the objects that cannot be shown as they are.
	refused map[configstore.ConfigKey]error
}

// Status is how a Cache is at one moment.
type Status struct {
	// Stale is true while the content of the file is shown because the wrapped cache has not
	// synced.
	Stale bool
	// Written is when the file was written that was loaded, or that was saved last; zero:
	// there is none.
	Written time.Time
	// Refused is the reason why an existing file was not loaded, or nil. It matches ErrForeign,
	// ErrVersion, ErrCorrupt, ErrKind, or the errors of package io/fs.
	Refused error
	// Err is why the file could not be written, if the last attempt failed.
	Err error
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// New returns the cache of a cache that was not run yet, with the content of the file at
// path, if there is one that can be loaded. It starts nothing.
func New(source configstore.ConfigStoreCache, path string, opts ...Options) *Cache {
	return newCache(source, path, osDisk{}, options.One("checkpoint.New", opts))
}

func newCache(source configstore.ConfigStoreCache, path string, d disk, o Options) *Cache {
	if o.Interval <= 0 {
		o.Interval = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	shown := memory.NewController(
		memory.Make(source.Schemas(), memory.Options{Mirror: true, SkipValidation: true, HistoryLimit: o.HistoryLimit}),
		memory.ControllerOptions{Logger: o.Logger})
	c := &Cache{
		reads: shown, shown: shown, source: source, path: path, opts: o, disk: d,
		refused: map[configstore.ConfigKey]error{},
	}
	shown.RegisterHasSyncedHandler(func() bool { return c.warm.Load() || c.live.Load() })
	c.load()
	c.follow()
	return c
}

// load shows the content of the file.
func (c *Cache) load() {
	data, _, err := regularfile.Read(c.path, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var objects []configstore.Config
	if err == nil {
		objects, c.status.Written, err = read(data, c.Schemas())
	}
	if err != nil {
		c.status.Written = time.Time{}
		c.status.Refused = fmt.Errorf("load %s: %w", c.path, err)
		c.opts.Logger.Error("checkpoint is rejected", slog.Any("error", c.status.Refused))
		return
	}
	c.publish(creations(objects))
	c.saved = c.shown.Revision()
	c.status.Stale = true
	c.pending = map[configstore.ConfigKey]*configstore.Config{}
	c.warm.Store(true)
}

func creations(objects []configstore.Config) []configstore.Mutation {
	out := make([]configstore.Mutation, len(objects))
	for i, o := range objects {
		out[i] = configstore.Mutation{Op: configstore.OpCreate, Config: o}
	}
	return out
}

// Status returns how the cache is.
func (c *Cache) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Save writes the file now, if the shown content differs from the file. It does nothing before the
// wrapped cache has synced.
func (c *Cache) Save() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	if !c.live.Load() {
		return nil
	}
	snapshot := c.shown.Snapshot()
	c.mu.Lock()
	current := c.saved == snapshot.Revision() && !c.status.Written.IsZero()
	c.mu.Unlock()
	if current {
		return nil
	}
	at := time.Now()
	err := replaceFile(c.disk, c.path, func(w io.Writer) error { return write(w, snapshot, c.Schemas(), at) })
	if err != nil {
		err = fmt.Errorf("save the checkpoint: %w", err)
	}
	c.mu.Lock()
	failed := c.status.Err == nil && err != nil
	c.status.Err = err
	if err == nil {
		c.saved, c.status.Written = snapshot.Revision(), at
	}
	c.mu.Unlock()
	if failed {
		c.opts.Logger.Error("checkpoint is not written", slog.Any("error", err))
	}
	return err
}

// Snapshot returns the shown content of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.shown.Snapshot() }

// Get implements ConfigStore.
func (c *Cache) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	return c.reader().Get(kind, name, namespace)
}

// List implements ConfigStore.
func (c *Cache) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	return c.reader().List(kind, namespace)
}

// reader returns the store that serves reads. It is the wrapped cache after Run has ended, because
// changes are no longer delivered then.
func (c *Cache) reader() configstore.Reader {
	if c.ended.Load() && c.live.Load() {
		return c.source
	}
	return c.shown
}

// Create implements ConfigStore, of the wrapped cache.
func (c *Cache) Create(config configstore.Config) (revision string, err error) {
	return c.source.Create(config) //nolint:wrapcheck // with its errors
}

// Update implements ConfigStore, of the wrapped cache.
func (c *Cache) Update(config configstore.Config) (revision string, err error) {
	return c.source.Update(config) //nolint:wrapcheck // with its errors
}

// UpdateStatus implements ConfigStore, of the wrapped cache.
func (c *Cache) UpdateStatus(config configstore.Config) (revision string, err error) {
	return c.source.UpdateStatus(config) //nolint:wrapcheck // with its errors
}

// Delete implements ConfigStore, of the wrapped cache.
func (c *Cache) Delete(kind configstore.GroupVersionKind, name, namespace string, resourceVersion *string) error {
	return c.source.Delete(kind, name, namespace, resourceVersion) //nolint:wrapcheck // with its errors
}

// HasSynced implements ConfigStoreCache. It is true once the handlers have processed the content of
// the file or, without a file, the content that the wrapped cache had when it synced.
func (c *Cache) HasSynced() bool {
	c.goLive()
	return c.shown.HasSynced()
}

// Drain implements configstore.Drainer, for both caches.
func (c *Cache) Drain() {
	// Handlers may write to the source, which is told then.
	for before := ^uint64(0); before != c.shown.Revision(); {
		before = c.shown.Revision()
		c.shown.Drain()
		if d, ok := configstore.As[configstore.Drainer](c.source); ok {
			d.Drain()
		}
		c.goLive()
	}
	c.shown.Drain()
}

// Flush implements configstore.Flusher, for both caches.
func (c *Cache) Flush(ctx context.Context) error {
	if f, ok := configstore.As[configstore.Flusher](c.source); ok {
		if err := f.Flush(ctx); err != nil {
			return err //nolint:wrapcheck // of the wrapped cache
		}
	}
	c.goLive()
	return c.shown.Flush(ctx) //nolint:wrapcheck // of a part of this one
}
