// SPDX-License-Identifier: Apache-2.0

package loglimit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/loglimit"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestOncePerMinute: an event that occurs every second for an hour is logged once a minute.
func TestOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l loglimit.Limiter
		var at []time.Duration
		start := time.Now()
		for range 3600 {
			if l.Allow("one", "group") {
				at = append(at, time.Since(start))
			}
			time.Sleep(time.Second)
		}
		if len(at) != 60 {
			t.Errorf("logged %d times, want 60: %v", len(at), at)
		}
		for i, d := range at[1:] {
			if d-at[i] < time.Minute {
				t.Errorf("logged after %v and after %v", at[i], d)
			}
		}
	})
}

// TestManyKeys: of very many different things about a hundred are logged in a minute, and
// another hundred in the next one.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l loglimit.Limiter
		for minute := range 3 {
			logged := 0
			for i := range 2000 {
				if l.Allow(fmt.Sprint(minute, " ", i), []string{"a", "b"}[i%2]) {
					logged++
				}
			}
			if want := 100 + 2; logged != want {
				t.Errorf("minute %d: %d logged, want %d", minute, logged, want)
			}
			time.Sleep(time.Minute)
		}
	})
}
