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

// Bridge is a registry that shows what a catalogue lists. Create it with New.
type Bridge struct {
	instance
	filled    *memory.Registry // which instance is
	catalogue Catalogue
	watcher   Watcher // nil if the catalogue is none
	opts      Options
	logger    *slog.Logger

	started, synced, accept atomic.Bool
	// turn has an element while somebody lists: one at a time.
	turn chan struct{}

	// Only who has the turn uses these.

	// shown is what the registry shows, held the list that is held back, and holds how
	// many have been since the first one that it confirms.
	shown, held content
	holds       int
	// doubtful: there was an error since the last list that was taken.
	doubtful bool
	// unwatched: the last attempt to watch has failed. Lists may be taken in between all
	// the same, which are not logged as the end of that.
	unwatched bool
	// revision is that of the last list.
	revision string

	mu     sync.Mutex
	status Status
}

// instance is what a bridge has of the registry that it fills.
type instance interface {
	registry.Instance
	registry.Subscriber
	registry.GatewaySubscriber
	registry.ServiceSnapshotter
	configstore.Drainer
	configstore.Flusher
}

var _ instance = (*Bridge)(nil)

// New returns a registry without services. It starts nothing.
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

// HasSynced reports whether a list was taken.
func (b *Bridge) HasSynced() bool { return b.synced.Load() }

// Accept makes the next list be taken as it is, even if it is empty or drops much.
func (b *Bridge) Accept() { b.accept.Store(true) }

// Sync lists the catalogue once, now. It returns nil if the list was taken, even if
// records have defects, which the Status has; an error that wraps ErrHeld if it is held
// back; or that of the catalogue. Run calls it; at the same time nobody else needs to,
// but may, to have a change seen at once.
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
		return fmt.Errorf("publish the list of the catalogue: %w", err) // not after collect
	}
	if b.drops(b.shown, next) {
		b.logger.Warn("a list that drops much is taken", slog.Int("dropped", b.shown.missing(next)),
			slog.String("before", b.shown.String()), slog.String("now", next.String()))
	}
	b.shown, b.held, b.holds, b.doubtful = next, content{}, 0, false
	b.synced.Store(true)
	b.current(defects)
	return nil
}

// take waits for the turn, which give ends. The error is the cause of ctx's end.
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

// fail notes an error of the catalogue.
func (b *Bridge) fail(err error) {
	b.doubtful = true
	b.stale(err)
}
