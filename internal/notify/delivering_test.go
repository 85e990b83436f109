// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/notify"
)

// TestDeliveringWithoutEnd: while values arrive faster than they are handled, a poller of
// Delivering finds a moment when all handlers agree, as often as it polls.
func TestDeliveringWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var first, second atomic.Int64
		q.Subscribe(subscription{Batch: func(batch []int) {
			q.Push(0)
			first.Add(int64(len(batch)))
			time.Sleep(time.Millisecond)
		}})
		q.Subscribe(subscription{Batch: func(batch []int) { second.Add(int64(len(batch))) }})
		q.Push(0)
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { q.Run(stop) })
		defer func() {
			close(stop)
			running.Wait()
		}()
		for range 100 {
			time.Sleep(3 * time.Millisecond)
			asked := 0
			for q.Delivering() {
				if asked++; asked > 8 {
					t.Fatal("delivering for more than 2 ms")
				}
				time.Sleep(250 * time.Microsecond)
			}
			if a, b := first.Load(), second.Load(); a != b {
				t.Errorf("not delivering, and handlers have %d and %d values", a, b)
			}
		}
	})
}

// TestDeliveringUnasked: delivery does not pause without a poller.
func TestDeliveringUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		n := 0
		q.Subscribe(subscription{Handle: func(int) {
			if n++; n < 1000 {
				q.Push(0)
			}
		}})
		q.Push(0)
		begun := time.Now()
		q.Drain()
		if n != 1000 || time.Since(begun) > 0 || q.Delivering() {
			t.Errorf("%d values in %v, delivering: %v", n, time.Since(begun), q.Delivering())
		}
	})
}
