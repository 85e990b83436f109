// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"context"
	"fmt"
	"strings"
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

// The intervals between polls of a Syncer without a signal in WaitForSync. They grow, because a
// long wait is not made much longer by a late poll.
const (
	firstSyncPoll = time.Millisecond
	lastSyncPoll  = 50 * time.Millisecond
)

// WaitForSync returns nil when all syncers have synced. List stores first, then registries, then
// the servers that use them, which is the order in which a host starts them. They must be running,
// or driven by another goroutine. It waits for the signal of a SyncSignaler, and polls all others.
// A cache that does not know its source (see SourceRegistrar) has synced at once: pass such a
// source too, before the cache. The error is the cause of ctx's end, wrapped with each Syncer that
// has not synced: its type, or its name in a Group, and the reason if it reports one
// (PendingSyncer, SourceStater).
func WaitForSync(ctx context.Context, syncers ...Syncer) error {
	for _, s := range syncers {
		if err := waitForSync(ctx, s); err != nil {
			pending := unsynced(syncers)
			if len(pending) == 0 { // it has synced at this moment
				pending = []string{Pending(s)}
			}
			return fmt.Errorf("wait for sync of %s: %w", strings.Join(pending, ", "), err)
		}
	}
	return nil
}

// PendingSyncer is the ability of a Syncer to say why it has not synced.
type PendingSyncer interface {
	Syncer
	// Pending returns the reason why the Syncer has not synced, such as "Run has not been called". It
	// returns "" if the Syncer has synced or does not know the reason.
	Pending() string
}

// Pending returns the name of a Syncer that has not synced, its type by default, and why it has not.
func Pending(s Syncer) string {
	name := fmt.Sprintf("%T", s)
	if n, ok := s.(named); ok {
		name, s = n.name, n.Syncer
	}
	why := ""
	if p, ok := s.(PendingSyncer); ok {
		why = p.Pending()
	}
	if stater, ok := s.(SourceStater); ok && why == "" {
		if err := stater.SourceState().Err; err != nil {
			why = err.Error()
		}
	}
	if why == "" {
		return name
	}
	return name + " (" + why + ")"
}

// unsynced returns the Pending texts of the syncers that have not synced.
func unsynced(syncers []Syncer) (pending []string) {
	for _, s := range syncers {
		if !s.HasSynced() {
			pending = append(pending, Pending(s))
		}
	}
	return pending
}

// named is a Syncer with the name that a program gives it.
type named struct {
	Syncer
	name string
}

func waitForSync(ctx context.Context, s Syncer) error {
	var synced <-chan struct{}
	signals := s
	if n, ok := s.(named); ok {
		signals = n.Syncer
	}
	if signaler, ok := signals.(SyncSignaler); ok {
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
