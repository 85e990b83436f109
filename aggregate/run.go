// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// Run runs all registries, including those added later, until stop is closed. It returns when all
// of them have ended. A second call panics. No handler is called after Run has returned.
//
// A Controller delivers events without Run too, as far as its registries do, because the goroutine
// that causes an event delivers it.
func (c *Controller) Run(stop <-chan struct{}) {
	c.begin(stop)
	c.queue.Run(stop)
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.group.Wait()
}

func (c *Controller) begin(stop <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran {
		panic("aggregate: Run called twice")
	}
	c.ran, c.stop = true, stop
	c.group.Go(func() { c.pruneUntil(stop) })
	for _, reg := range c.merged.Load().registrations {
		c.startLocked(reg)
	}
}

// startLocked starts a registry, unless it was started or retired before.
func (c *Controller) startLocked(reg *registration) {
	if reg.started || reg.retired || c.stopped {
		return
	}
	reg.started = true
	stop := c.stop
	c.group.Go(func() { c.runRegistry(reg, stop) })
}

// runRegistry runs a registry until the first reason to stop.
func (c *Controller) runRegistry(r *registration, controller <-chan struct{}) {
	stop, done := make(chan struct{}), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		defer close(stop)
		select {
		case <-controller:
		case <-r.own:
		case <-r.gone:
			c.guarded("Flush of a registry", r.shard, func() { r.flush(controller, done) })
		case <-done:
		}
	})
	c.guarded("Run of a registry", r.shard, func() { r.instance.Run(stop) })
	close(done)
	watcher.Wait()
}

// flush waits until a retired registry has sent its queued events, or has to stop immediately.
// These events include the replay that retire uses to retract workloads. A later event either
// reaches both the host's handlers and the handler of retire, or neither.
//
//nolint:contextcheck,nolintlint // Run has a stop channel
func (r *registration) flush(controller, done <-chan struct{}) {
	flusher, ok := registry.As[configstore.Flusher](r.instance)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var stops sync.WaitGroup
	stops.Go(func() {
		defer cancel()
		select {
		case <-controller:
		case <-r.own:
		case <-done:
		case <-ctx.Done():
		}
	})
	_ = flusher.Flush(ctx) // Otherwise it is to stop, or has.
	cancel()
	stops.Wait()
}

// Drain implements configstore.Drainer. It drains the registries that are Drainers, and then
// delivers the queued events.
func (c *Controller) Drain() {
	for _, reg := range c.merged.Load().registrations {
		if d, ok := registry.As[configstore.Drainer](reg.instance); ok {
			d.Drain()
		}
	}
	c.queue.Drain()
}

// Flush implements configstore.Flusher. It flushes the registries that are Flushers, and then the
// events that they have sent.
func (c *Controller) Flush(ctx context.Context) error {
	for _, reg := range c.merged.Load().registrations {
		if f, ok := registry.As[configstore.Flusher](reg.instance); ok {
			if err := f.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return c.queue.Flush(ctx)
}

// HasSynced reports whether all registries have synced. It returns true without registries.
func (c *Controller) HasSynced() bool {
	c.prune()
	for _, reg := range c.merged.Load().registrations {
		if !reg.instance.HasSynced() {
			return false
		}
	}
	return true
}

// Pending implements configstore.PendingSyncer. It describes the registries that have not synced.
func (c *Controller) Pending() string {
	var names []string
	for _, reg := range c.merged.Load().registrations {
		if !reg.instance.HasSynced() {
			names = append(names, reg.shard.String()+": "+configstore.Pending(reg.instance))
		}
	}
	return strings.Join(names, ", ")
}
