// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/internal/configfeed"
)

// follow registers with the source, by batches if it can.
func (c *Cache) follow() {
	var kinds []configstore.GroupVersionKind
	for _, s := range c.Schemas().All() {
		kinds = append(kinds, s.GroupVersionKind)
	}
	configfeed.Subscribe(c.source, kinds, c.told)
}

// told handles changes of the source: they are pending until the source has synced, and shown from
// then on.
func (c *Cache) told(changes []configstore.Change) {
	c.feeding.Lock()
	defer c.feeding.Unlock()
	if c.pending == nil {
		c.show(changes)
		return
	}
	for _, ch := range changes {
		if ch.Event == configstore.EventDelete {
			delete(c.pending, ch.Curr.Key())
		} else {
			c.pending[ch.Curr.Key()] = ch.Curr
		}
	}
}

// show commits the changes of the source as a batch.
func (c *Cache) show(changes []configstore.Change) {
	batch := make([]configstore.Mutation, len(changes))
	for i, ch := range changes {
		batch[i] = configstore.Mutation{Op: configstore.OpUpsert, Config: *ch.Curr}
		if ch.Event == configstore.EventDelete {
			batch[i] = commit.Deletion(ch.Curr.Key())
		}
	}
	c.publish(batch)
}

// publish shows changes as one batch. An object that cannot be shown keeps its last state.
func (c *Cache) publish(mutations []configstore.Mutation) {
	refused := commit.Show(c.shown, mutations)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range mutations {
		delete(c.refused, mutations[i].Config.Key())
	}
	for _, r := range refused {
		c.refused[r.Object] = r.Err
		c.opts.Logger.Error("config was not published", slog.String("object", r.Object.Object()), slog.Any("error", r.Err))
	}
}

// goLive switches to the content of the source, if it has synced. The difference to the shown
// content is one batch.
func (c *Cache) goLive() {
	if c.live.Load() || !c.source.HasSynced() {
		return
	}
	c.feeding.Lock()
	defer c.feeding.Unlock()
	if c.live.Load() {
		return
	}
	if c.pending != nil {
		c.publish(c.difference())
		c.pending = nil
	}
	c.mu.Lock()
	c.status.Stale = false
	c.mu.Unlock()
	c.live.Store(true)
}

// difference returns the mutations that turn the shown content into the pending content: deletions
// first, then the rest in the order of kinds and lists.
func (c *Cache) difference() []configstore.Mutation {
	var deletions, rest []configstore.Mutation
	for _, schema := range c.Schemas().All() {
		for _, old := range c.shown.List(schema.GroupVersionKind, configstore.NamespaceAll) {
			next, ok := c.pending[old.Key()]
			switch {
			case !ok:
				deletions = append(deletions, commit.Deletion(old.Key()))
			case !old.Equal(*next):
				rest = append(rest, configstore.Mutation{Op: configstore.OpUpdate, Config: *next})
			}
			delete(c.pending, old.Key())
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.pending), configstore.ConfigKey.Compare) {
		rest = append(rest, configstore.Mutation{Op: configstore.OpCreate, Config: *c.pending[key]})
	}
	return append(deletions, rest...)
}

// Run implements ConfigStoreCache: it runs the wrapped cache, delivers events, and writes the file.
// Failed writes of the file are retried.
func (c *Cache) Run(stop <-chan struct{}) {
	if c.started.Swap(true) {
		panic("configstore/checkpoint: Run called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var running sync.WaitGroup
	running.Go(func() { c.source.Run(stop) })
	running.Go(func() { c.keep(ctx) })
	c.shown.Run(stop)
	cancel()
	running.Wait()
	c.ended.Store(true)
}

// keep waits for the source, and then saves again and again, and once more in the end.
func (c *Cache) keep(ctx context.Context) {
	if configstore.WaitForSync(ctx, c.source) != nil {
		return // there is nothing new
	}
	c.goLive()
	ticker := time.NewTicker(c.opts.Interval)
	defer ticker.Stop()
	for ended := false; !ended; {
		_ = c.Save() // Status has the error
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
	}
	_ = c.Save()
}
