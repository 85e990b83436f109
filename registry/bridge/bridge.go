// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Bridge is a registry with the services of a catalogue. Create it with New.
type Bridge struct {
	instance
	filled    *memory.Registry // the registry behind instance
	catalogue Catalogue
	watcher   Watcher // nil if the catalogue is not a Watcher
	opts      Options
	logger    *slog.Logger

	started, synced, accept atomic.Bool
	// turn holds a token while a goroutine lists, so that lists are serial.
	turn chan struct{}

	// Only the holder of turn uses the fields below.

	// shown is the published content. held is the content that is held back, and holds the number
	// of lists since the first one that it confirms.
	shown, held content
	holds       int
	// doubtful is set if there was an error since the last accepted list.
	doubtful bool
	// unwatched is set if the last attempt to watch failed. Lists may still be accepted meanwhile;
	// they are not logged as the end of the failure.
	unwatched bool
	// revision is the revision of the last list.
	revision string

	mu     sync.Mutex
	status Status
}

// instance has the abilities of the underlying registry that a bridge exposes.
type instance interface {
	registry.Instance
	registry.Subscriber
	registry.GatewaySubscriber
	registry.ServiceSnapshotter
	configstore.Drainer
	configstore.Flusher
}

var _ instance = (*Bridge)(nil)

// New returns a registry without services. It starts no goroutine.
func New(catalogue Catalogue, opts ...Options) *Bridge {
	o := options.One("bridge.New", opts).withDefaults()
	r := memory.New(memory.Options{Provider: o.Provider, Cluster: o.Cluster, Updater: o.Updater, Logger: o.Logger})
	watcher, _ := catalogue.(Watcher)
	b := &Bridge{instance: r, filled: r, catalogue: catalogue, watcher: watcher, opts: o, turn: make(chan struct{}, 1)}
	b.logger = slog.New(slog.DiscardHandler)
	if o.Logger != nil {
		b.logger = o.Logger.With(slog.String("registry", xdsupdate.ShardKeyOf(r).String()))
	}
	return b
}

// HasSynced reports whether a list was accepted.
func (b *Bridge) HasSynced() bool { return b.synced.Load() }

// Accept makes the bridge accept the next list in any case, even if it is empty or drops much.
func (b *Bridge) Accept() { b.accept.Store(true) }

// Sync lists the catalogue once, immediately. It returns nil if the list was accepted, even if
// records have defects, which are in the Status. Otherwise the error wraps ErrHeld if the list is
// held back, or is the error of the catalogue. Run calls Sync. While Run works, calling Sync is
// optional; it makes a change visible at once.
func (b *Bridge) Sync(ctx context.Context) error {
	if err := b.take(ctx); err != nil {
		return fmt.Errorf("list the catalogue: %w", err)
	}
	defer b.give()
	listing, err := b.list(ctx)
	if err != nil {
		b.fail(err)
		return err
	}
	b.revision = listing.Revision
	next, defects := b.collect(listing.Records)
	if err := b.hold(next); err != nil {
		b.stale(err)
		return err
	}
	if err := b.filled.Replace(next.definitions()); err != nil {
		return fmt.Errorf("publish the list of the catalogue: %w", err) // collect excludes this error
	}
	if b.drops(b.shown, next) {
		b.logger.Warn("a list that drops much is accepted", slog.Int("dropped", b.shown.missing(next)),
			slog.String("before", b.shown.String()), slog.String("now", next.String()))
	}
	b.shown, b.held, b.holds, b.doubtful = next, content{}, 0, false
	b.synced.Store(true)
	b.current(defects)
	return nil
}

// take acquires the turn, which give releases. The error is the cause of ctx's end.
func (b *Bridge) take(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // callers do
	}
}

func (b *Bridge) give() { <-b.turn }

// list calls the catalogue.
func (b *Bridge) list(ctx context.Context) (listing Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.ListTimeout)
	defer cancel()
	if p := guard.Call(func() { listing, err = b.catalogue.List(ctx) }); p != nil {
		b.logPanic(p)
		err = p
	}
	if err != nil {
		return Listing{}, fmt.Errorf("list the catalogue: %w", err)
	}
	return listing, nil
}

// fail records an error of the catalogue.
func (b *Bridge) fail(err error) {
	b.doubtful = true
	b.stale(err)
}
