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

// The intervals between polls of a Syncer in WaitForSync. They grow, because a
// long wait is not made much longer by a late poll.
const (
	firstSyncPoll = time.Millisecond
	lastSyncPoll  = 50 * time.Millisecond
)

// WaitForSync returns nil when all syncers have synced. It waits for them one after the other, so
// list them in the order in which a host starts them: stores, registries, servers. The syncers must
// be running, or driven by another goroutine. A cache that does not know its source (see
// SourceRegistrar) has synced at once: pass the source too, before the cache. The error wraps the
// cause of ctx's end, and names each Syncer that has not synced, as Pending does.
func WaitForSync(ctx context.Context, syncers ...Syncer) error {
	for _, s := range syncers {
		if err := waitForSync(ctx, s); err != nil {
			return fmt.Errorf("wait for sync of %s: %w", Pending(syncers...), err)
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

// Pending returns the types of the syncers that have not synced, each with the reason if the Syncer
// reports one (PendingSyncer, SourceStater). It returns "" if all have synced.
func Pending(syncers ...Syncer) string {
	var pending []string
	for _, s := range syncers {
		if !s.HasSynced() {
			pending = append(pending, pendingAs(fmt.Sprintf("%T", s), s))
		}
	}
	return strings.Join(pending, ", ")
}

// pendingAs returns a name of a Syncer with the reason why the Syncer has not synced.
func pendingAs(name string, s Syncer) string {
	why := ""
	if p, ok := s.(PendingSyncer); ok {
		why = p.Pending()
	}
	if stater, ok := s.(SourceStater); ok && why == "" {
		why = stater.SourceState().pending()
	}
	if why == "" {
		return name
	}
	return name + " (" + why + ")"
}

func waitForSync(ctx context.Context, s Syncer) error {
	wait := firstSyncPoll
	poll := time.NewTimer(wait)
	defer poll.Stop()
	for !s.HasSynced() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
			wait = min(2*wait, lastSyncPoll)
			poll.Reset(wait)
		}
	}
	return nil
}
