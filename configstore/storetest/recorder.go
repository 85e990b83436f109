// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// Call is one call of an event handler.
type Call struct {
	Old, Curr configstore.Config
	Event     configstore.Event
}

// String returns the event and the object, as in "update Widget default/foo".
func (c Call) String() string { return c.Event.String() + " " + c.Curr.Key().Object() }

// Recorder is an event handler that remembers its calls. The zero value is ready
// for use; register its Handle.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
	// grown is closed when a call is added; nil while nobody waits.
	grown chan struct{}
}

// Handle is a configstore.EventHandler.
func (r *Recorder) Handle(old, curr configstore.Config, event configstore.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, Call{Old: old, Curr: curr, Event: event})
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// Calls returns what was recorded and not yet taken. The caller may keep it.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Take returns what was recorded and forgets it.
func (r *Recorder) Take() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// ExpectExactly fails the test unless the calls that were not yet taken are
// these, in this order, each written as Call.String does. It waits up to 10 s
// until there are as many, and takes them. A call too many that comes later is
// found by the next ExpectExactly.
func (r *Recorder) ExpectExactly(tb testing.TB, want ...string) {
	tb.Helper()
	r.await(10*time.Second, func(calls []Call) bool { return len(calls) >= len(want) })
	calls := r.Take()
	got := make([]string, len(calls))
	for i, c := range calls {
		got[i] = c.String()
	}
	if !slices.Equal(got, want) {
		tb.Errorf("events:\n\t%s\nwant exactly:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// await waits until enough says yes to the calls so far, and tells whether it
// did.
func (r *Recorder) await(timeout time.Duration, enough func([]Call) bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		r.mu.Lock()
		if enough(r.calls) {
			r.mu.Unlock()
			return true
		}
		if r.grown == nil {
			r.grown = make(chan struct{})
		}
		grown := r.grown
		r.mu.Unlock()
		select {
		case <-grown:
		case <-timer.C:
			return false
		}
	}
}
