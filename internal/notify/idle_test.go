// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/notify"
)

// A queue is idle when it will handle no more values: all have been handled, or Run has ended and
// dropped the rest.
func TestIdle(t *testing.T) {
	q := notify.New(options{})
	stop := make(chan struct{})
	q.Subscribe(subscription{Handle: func(v int) {
		if v == 2 {
			close(stop)
		}
	}})
	if q.Idle() {
		t.Error("idle before the registration was handled")
	}
	q.Push(1)
	q.Drain()
	if !q.Idle() {
		t.Error("not idle after Drain")
	}
	q.Push(2, 3)
	if q.Idle() {
		t.Error("idle with values to be handled")
	}
	q.Run(stop)
	if !q.Idle() {
		t.Error("not idle after Run")
	}
}
