// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

// call is one call of a service handler.
type call struct {
	Prev, Curr *registry.Service
	Event      registry.Event
}

// String returns the event and the service, as in "update retail/shop.example.com".
func (c call) String() string { return c.Event.String() + " " + c.Curr.Key() }

// recorder is a service handler that records its calls.
type recorder struct{ contract.Recording[call] }

func (r *recorder) handle(prev, curr *registry.Service, event registry.Event) {
	r.Add(call{Prev: prev, Curr: curr, Event: event})
}

func texts(calls []call) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.String()
	}
	return out
}
