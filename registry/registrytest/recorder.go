// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/contract"
	"github.com/pilotkit/pilotkit/registry"
)

// Call is one call of a service handler.
type Call struct {
	Prev, Curr *registry.Service
	Event      registry.Event
}

// String returns the event and the service, as in "update retail/shop.example.com".
func (c Call) String() string { return c.Event.String() + " " + c.Curr.Key() }

// Recorder is a service handler that remembers its calls. The zero value is ready
// for use; register its Handle.
type Recorder struct{ calls contract.Recording[Call] }

// Handle is a registry.ServiceHandler.
func (r *Recorder) Handle(prev, curr *registry.Service, event registry.Event) {
	r.calls.Add(Call{Prev: prev, Curr: curr, Event: event})
}

// Take returns the calls that were not yet taken.
func (r *Recorder) Take() []Call { return r.calls.Take() }

// ExpectExactly fails the test unless the calls that were not yet taken are
// these, in this order, each written as Call.String does. It takes them. It does
// not wait: what makes the calls must have finished.
func (r *Recorder) ExpectExactly(tb testing.TB, want ...string) {
	tb.Helper()
	if got := texts(r.Take()); !slices.Equal(got, want) {
		tb.Errorf("events:\n\t%s\nwant exactly:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func texts(calls []Call) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.String()
	}
	return out
}
