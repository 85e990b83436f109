// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
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
type Recorder struct{ calls contract.Recording[Call] }

// Handle is a configstore.EventHandler.
func (r *Recorder) Handle(old, curr configstore.Config, event configstore.Event) {
	r.calls.Add(Call{Old: old, Curr: curr, Event: event})
}

// Calls returns the recorded calls that were not yet taken. The caller may keep the slice.
func (r *Recorder) Calls() []Call { return r.calls.All() }

// Take returns the recorded calls and removes them.
func (r *Recorder) Take() []Call { return r.calls.Take() }

// Expect fails the test unless the calls that were not yet taken are
// these, in this order, each written as Call.String does. It waits up to 10 s
// until there are as many, and takes them. A call too many that comes later is
// found by the next Expect.
func (r *Recorder) Expect(tb testing.TB, want ...string) {
	tb.Helper()
	r.calls.Await(defaultTimeout, func(calls []Call) bool { return len(calls) >= len(want) })
	calls := r.Take()
	got := make([]string, len(calls))
	for i, c := range calls {
		got[i] = c.String()
	}
	if !slices.Equal(got, want) {
		tb.Errorf("events:\n\t%s\nwant exactly:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
