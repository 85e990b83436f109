// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"context"
	"fmt"
	"time"
)

// Syncer is anything that has an initial state to reach: caches, sources of
// configs, registries.
type Syncer interface {
	// HasSynced reports whether the initial state has been reached. Once true it
	// stays true.
	HasSynced() bool
}

// SyncSignaler is the ability of a Syncer to say when it has synced, so that
// WaitForSync need not ask again and again.
type SyncSignaler interface {
	Syncer
	// Synced returns a channel that is closed when HasSynced becomes true.
	Synced() <-chan struct{}
}

// How often WaitForSync asks a Syncer that gives no signal: rarer and rarer,
// because what takes long is not late by a little more.
const (
	firstSyncPoll = time.Millisecond
	lastSyncPoll  = 50 * time.Millisecond
)

// WaitForSync returns nil when all have synced: stores, then registries, then
// what serves them, the order in which a program starts them. They must be
// running, or driven by another goroutine. It waits for the signal of a
// SyncSignaler, and asks others until they have. A cache that does not know what fills
// it (SourceRegistrar) has synced at once: give such a source too, before the cache. The
// error is the cause of ctx's end, wrapped with the type of the first that has not synced.
func WaitForSync(ctx context.Context, syncers ...Syncer) error {
	for _, s := range syncers {
		if err := waitForSync(ctx, s); err != nil {
			return fmt.Errorf("wait for sync of %T: %w", s, err)
		}
	}
	return nil
}

func waitForSync(ctx context.Context, s Syncer) error {
	var synced <-chan struct{}
	if signaler, ok := s.(SyncSignaler); ok {
		synced = signaler.Synced()
	}
	poll := time.NewTicker(lastSyncPoll)
	defer poll.Stop()
	for wait := firstSyncPoll; !s.HasSynced(); wait = min(2*wait, lastSyncPoll) {
		again := poll.C
		if synced != nil {
			again = nil
		} else {
			poll.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-synced:
			return nil
		case <-again:
		}
	}
	return nil
}
