// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// syncsAt has synced from a moment on, and counts how often it was asked.
type syncsAt struct {
	at    time.Time
	asked int
}

func (s *syncsAt) HasSynced() bool {
	s.asked++
	return !time.Now().Before(s.at)
}

// signals has synced when its channel is closed.
type signals struct {
	syncsAt
	synced chan struct{}
}

func (s *signals) Synced() <-chan struct{} { return s.synced }

func TestWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		polled := &syncsAt{at: start.Add(time.Second)}
		signaler := &signals{syncsAt: syncsAt{at: start.Add(3 * time.Second)}, synced: make(chan struct{})}
		time.AfterFunc(3*time.Second, func() { close(signaler.synced) })
		if err := configstore.WaitForSync(t.Context(), &syncsAt{}, polled, signaler, polled); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited for %v, want 3s", took)
		}
		if polled.asked < 10 || polled.asked > 40 {
			t.Errorf("asked %d times within a second", polled.asked)
		}
		if signaler.asked > 2 {
			t.Errorf("asked %d times instead of waiting for the signal", signaler.asked)
		}
	})
}

// TestWaitForSyncEndsWithItsContext: the error names the syncer that has not synced.
func TestWaitForSyncEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := time.Now().Add(time.Hour)
		for _, s := range []configstore.Syncer{&syncsAt{at: never}, &signals{syncsAt: syncsAt{at: never}}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := configstore.WaitForSync(ctx, &syncsAt{}, s)
			if cancel(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "configstore_test.s") {
				t.Errorf("err = %v, want a deadline and the type", err)
			}
		}
		if err := configstore.WaitForSync(t.Context()); err != nil {
			t.Errorf("err = %v with nothing to wait for", err)
		}
	})
}
