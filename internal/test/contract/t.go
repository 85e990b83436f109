// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"
	"time"
)

// T is the testing.TB of a check.
type T struct {
	testing.TB
	// Timeout is how long to wait for something that must happen.
	Timeout time.Duration

	preface string
}

// Broken reports that the promise is broken, with the observation.
func (t *T) Broken(format string, args ...any) {
	t.Helper()
	t.Errorf("%s%s", t.preface, fmt.Sprintf(format, args...))
}

// Stop is Broken for when nothing more can be learnt.
func (t *T) Stop(format string, args ...any) {
	t.Helper()
	t.Fatalf("%s%s", t.preface, fmt.Sprintf(format, args...))
}

// Await waits for something that must happen.
func (t *T) Await(done <-chan struct{}, what string) {
	t.Helper()
	t.AwaitOpening(done, func() {}, what)
}

// AwaitOpening is Await. On a timeout, open releases the blocked goroutines before the check ends,
// so that none leaks.
func (t *T) AwaitOpening(done <-chan struct{}, open func(), what string) {
	t.Helper()
	timer := time.NewTimer(t.Timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		open()
		t.Stop("%s has not happened after %v", what, t.Timeout)
	}
}

// Within runs f on a goroutine of its own and waits for it.
func (t *T) Within(what string, f func()) {
	t.Helper()
	t.WithinOpening(what, func() {}, f)
}

// WithinOpening is Within. If f hangs, open releases the blocked goroutines before the check ends.
func (t *T) WithinOpening(what string, open, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	t.AwaitOpening(done, open, "the end of "+what)
}

// Eventually waits for a state that is not signalled by an event.
func (t *T) Eventually(what string, ok func() bool) {
	t.Helper()
	timer := time.NewTimer(t.Timeout)
	defer timer.Stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-timer.C:
			t.Stop("%s is not so after %v", what, t.Timeout)
		}
	}
}

// Idle waits a little, for calls that must not happen.
func (t *T) Idle() {
	timer := time.NewTimer(min(t.Timeout, 20*time.Millisecond))
	defer timer.Stop()
	<-timer.C
}
