// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestPromptly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ct := &contract.T{TB: t, Timeout: time.Second}
		opened := false
		open := func() { opened = true }
		done := make(chan struct{})
		ct.Within("closing", func() { close(done) })
		ct.WithinOpening("nothing", open, func() {})
		ct.Await(done, "the end")
		ct.AwaitOpening(done, open, "the end")
		start := time.Now()
		ct.Eventually("half the time", func() bool { return time.Since(start) >= time.Second/2 })
		if opened {
			t.Error("open was called although nothing hung")
		}
	})
}

func TestTooLate(t *testing.T) {
	for name, test := range map[string]struct {
		wait func(ct *contract.T, never chan struct{})
		want string
	}{
		"Await": {
			func(ct *contract.T, never chan struct{}) { ct.Await(never, "the end") },
			"the end has not happened after 1s",
		},
		"AwaitOpening": {
			func(ct *contract.T, never chan struct{}) { ct.AwaitOpening(never, func() { close(never) }, "the end") },
			"the end has not happened after 1s",
		},
		"WithinOpening": {
			func(ct *contract.T, never chan struct{}) {
				ct.WithinOpening("waiting", func() { close(never) }, func() { <-never })
			},
			"the end of waiting has not happened after 1s",
		},
		"Within": {
			func(ct *contract.T, never chan struct{}) {
				ct.Cleanup(func() { close(never) })
				ct.Within("waiting", func() { <-never })
			},
			"the end of waiting has not happened after 1s",
		},
		"Eventually": {
			func(ct *contract.T, _ chan struct{}) { ct.Eventually("it", func() bool { return false }) },
			"it is not so after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The waits take no time in a bubble, which also detects blocked goroutines.
			synctest.Test(t, func(t *testing.T) {
				got := contract.Capture(t, func(tb testing.TB) {
					tb.Helper()
					test.wait(&contract.T{TB: tb, Timeout: time.Second}, make(chan struct{}))
					tb.Errorf("went on")
				})
				if diff := cmp.Diff([]string{test.want}, got); diff != "" {
					t.Errorf("failures (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{
			time.Second:      20 * time.Millisecond,
			time.Millisecond: time.Millisecond,
		} {
			start := time.Now()
			(&contract.T{TB: t, Timeout: timeout}).Idle()
			if got := time.Since(start); got != want {
				t.Errorf("idle for %v with a timeout of %v, want %v", got, timeout, want)
			}
		}
	})
}
