// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/backoff"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// Run lists and watches the catalogue until stop is closed. After that neither the updater nor
// handlers are called. A second call panics.
func (b *Bridge) Run(stop <-chan struct{}) {
	if b.started.Swap(true) {
		panic("registry/bridge: Run called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	var following sync.WaitGroup
	following.Go(func() { b.follow(ctx) })
	b.instance.Run(stop)
	cancel()
	following.Wait()
}

// follow lists in a loop.
func (b *Bridge) follow(ctx context.Context) {
	retry := backoff.Backoff{Longest: b.opts.MaxBackoff}
	for ctx.Err() == nil {
		err := b.Sync(ctx)
		switch {
		case errors.Is(err, ErrHeld):
			retry.Reset()
			backoff.Sleep(ctx, backoff.Spread(b.opts.Interval, 0.1))
			continue
		case err == nil:
			err = b.wait(ctx)
		}
		if err != nil {
			backoff.Sleep(ctx, retry.Next())
		} else {
			// Reset only here, because a catalogue that can be listed, but not watched, would
			// otherwise be listed without a pause.
			retry.Reset()
		}
	}
}

// wait returns nil when the next list is due, or an error if the catalogue cannot be watched.
func (b *Bridge) wait(ctx context.Context) error {
	if b.watcher == nil {
		backoff.Sleep(ctx, backoff.Spread(b.opts.Interval, 0.1))
		return nil
	}
	backoff.Sleep(ctx, b.opts.MinInterval)
	if b.take(ctx) != nil {
		return nil //nolint:nilerr // the bridge stops
	}
	revision, unwatched := b.revision, b.unwatched
	b.give()
	limit := backoff.Spread(b.opts.Resync, 0.1)
	if trial := b.opts.Interval; unwatched && trial < limit {
		// If the catalogue is quiet, a watch that works again does not return.
		if quiet, err := b.watchFor(ctx, trial, revision); !quiet {
			return err
		}
		limit -= trial
	}
	_, err := b.watchFor(ctx, limit, revision)
	return err
}

// watchFor watches the catalogue for a limited time, and records whether that works. The result
// quiet reports whether the time passed without a change and without the end of the context.
func (b *Bridge) watchFor(ctx context.Context, limit time.Duration, revision string) (quiet bool, err error) {
	watching, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = b.watch(watching, revision)
	if quiet = watching.Err() != nil; quiet {
		err = nil // the watch worked until the limit
	}
	if b.take(ctx) != nil {
		return false, nil
	}
	defer b.give()
	b.watched(err)
	return quiet, err
}

// watch calls the catalogue.
func (b *Bridge) watch(ctx context.Context, revision string) (err error) {
	if p := guard.Call(func() { err = b.watcher.Watch(ctx, revision) }); p != nil {
		b.logPanic(p)
		err = p
	}
	if err != nil {
		return fmt.Errorf("watch the catalogue: %w", err)
	}
	return nil
}
