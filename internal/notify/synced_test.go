// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/notify"
)

func TestHasSynced(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	published := true
	source := func() bool { return published }
	if q.HasSynced(source) {
		t.Error("synced before anything was delivered")
	}
	published = false
	q.Subscribe(subscription{Replay: slices.Values([]int{1}), Handle: l.add})
	q.Drain()
	l.want(t, 1)
	if q.HasSynced(source) {
		t.Error("synced before the source")
	}
	q.Push(2)
	published = true
	if q.HasSynced(source) {
		t.Error("synced before the initial state was handled")
	}
	q.Push(3) // after the initial state
	q.Drain()
	if !q.HasSynced(source) {
		t.Error("not synced")
	}
	published = false
	q.Push(4)
	if !q.HasSynced(source) {
		t.Error("no longer synced")
	}
}

// Values pushed after the source was complete do not delay HasSynced, however many they are,
// because it is about the initial state.
func TestHasSyncedDoesNotWaitForLaterWrites(t *testing.T) {
	q := notify.New(options{})
	stop := make(chan struct{})
	syncedAt := 0
	q.Subscribe(subscription{Handle: func(v int) {
		q.Push(v + 1) // there is always another one
		switch {
		case q.HasSynced(nil):
			syncedAt = v
			close(stop)
		case v == 10:
			close(stop)
		}
	}})
	q.Push(1)
	q.Run(stop)
	// When 1 is handled 2 is queued, and the state that counts is 1 and 2.
	if syncedAt != 3 {
		t.Errorf("synced when %d was handled, want 3 (0: never)", syncedAt)
	}
}

func TestHasSyncedIncludesReplays(t *testing.T) {
	q := notify.New(options{})
	during := false
	q.Subscribe(subscription{Replay: slices.Values([]int{1, 2}), Handle: func(int) {
		during = during || q.HasSynced(nil)
	}})
	q.Drain()
	if during {
		t.Error("synced while a replay was being handled")
	}
	if !q.HasSynced(nil) {
		t.Error("not synced")
	}
}

// The source is asked until it is complete, and not again.
func TestHasSyncedAsksTheSource(t *testing.T) {
	q := notify.New(options{})
	q.Drain()
	asked := 0
	for range 4 {
		q.HasSynced(func() bool {
			asked++
			q.Push(1) // no lock is held
			return asked == 2
		})
	}
	if asked != 2 {
		t.Errorf("the source was asked %d times, want 2", asked)
	}
}

// Of calls at the same time, the first that finds the source complete fixes the state
// that counts.
func TestHasSyncedFixesItsTargetOnce(t *testing.T) {
	q := notify.New(options{})
	q.Subscribe(subscription{Handle: func(int) {}})
	q.Drain()
	synced := q.HasSynced(func() bool {
		if !q.HasSynced(nil) { // as another goroutine may, in the midst of this call
			t.Error("not synced with nothing to be handled")
		}
		q.Push(1)
		return true
	})
	if !synced {
		t.Error("no longer synced because of what was pushed later")
	}
}
