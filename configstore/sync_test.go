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

func TestWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		polled := &syncsAt{at: start.Add(time.Second)}
		if err := configstore.WaitForSync(t.Context(), &syncsAt{}, polled, &syncsAt{at: start.Add(3 * time.Second)}, polled); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 3*time.Second+50*time.Millisecond {
			t.Errorf("waited for %v, want 3s", took)
		}
		if polled.asked < 10 || polled.asked > 40 {
			t.Errorf("asked %d times within a second", polled.asked)
		}
	})
}

// TestWaitForSyncEndsWithItsContext: the error names the syncer that has not synced.
func TestWaitForSyncEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := configstore.WaitForSync(ctx, &syncsAt{}, &syncsAt{at: never})
		if cancel(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "configstore_test.s") {
			t.Errorf("err = %v, want a deadline and the type", err)
		}
		if err := configstore.WaitForSync(t.Context()); err != nil {
			t.Errorf("err = %v with nothing to wait for", err)
		}
	})
}
