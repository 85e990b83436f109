// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// state is the view of readers at one moment. All queries with one state are consistent and take no
// lock.
//
// Services and settings are immutable values. Most events change cells, which are mutable: the
// views of entries and of hosts, and the tables of hosts and of addresses. Persistent maps would be
// simpler, but cost 20 to 30 % more time for each change and three times the memory traffic.
// Instead, a state is a position in the history of the cells. A change of cells has three steps:
//
//  1. A step with the former values is created and linked to the present state.
//  2. The cells get their new values.
//  3. The next state is published.
//
// A reader first loads a cell and then follows the steps after its state. The first step that
// replaced the cell has the value for the reader. If there is no such step, the value is the one in
// the cell. A cell with a new value always has a linked step, so the reader cannot miss it. A
// reader of the present state, by far the usual case, finds no step. Links only go forward: after
// the last reader of a state is gone, the garbage collector frees the state and its former values.
type state struct {
	tables   *tables
	settings settings
	services *registry.ServiceSet
	// allocated returns services with the addresses of AllocateByHash, computed at the first call.
	// It is nil for other options.
	allocated func() *allocation
	// next leads to the next state, or is nil.
	next atomic.Pointer[step]
}

// tables are the cells that have a key. Only batches change them.
type tables struct {
	// hosts are the hosts with a view.
	hosts     pmap.Live[hostKey, *host]
	addresses *addressTable
	// more has the contributions at an address besides the first.
	more pmap.Live[string, []*contribution]
}

// hostView is a host name in one namespace. It is immutable, as all views are.
type hostView struct {
	// services are the services of all entries of the host, the oldest entry first.
	services  []*registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
}

// entryView is the data of an entry for readers, without its contributions.
type entryView struct{ bindings []bindingView }

// bindingView is the data of an entry for one of its hosts.
type bindingView struct {
	host     *host
	services []*registry.Service
	// roundRobin limits the contributions, if it is not nil.
	roundRobin *roundRobin
}

// step is the way from one state to the next: the cells that change, with the
// values that they had, in no order.
type step struct {
	hosts     []replaced[hostKey, *hostView]
	addresses []replaced[string, located]
	entries   []replaced[*entry, *entryView]
	// own are the workloads of WorkloadEntries, which only handlers look up, when they
	// are registered.
	own []replaced[objectName, *workload]
	to  *state
}

// newStep returns a step with room, which for most changes is one allocation.
func newStep(to *state, hosts, addresses, own int) *step {
	if hosts > 1 || addresses > 1 || own > 1 {
		return &step{
			to: to, hosts: make([]replaced[hostKey, *hostView], 0, hosts), addresses: make([]replaced[string, located], 0, addresses),
			own: make([]replaced[objectName, *workload], 0, own),
		}
	}
	x := &struct {
		step
		hosts     [1]replaced[hostKey, *hostView]
		addresses [1]replaced[string, located]
		own       [1]replaced[objectName, *workload]
	}{}
	x.step = step{to: to, hosts: x.hosts[:0], addresses: x.addresses[:0], own: x.own[:0]}
	return &x.step
}

type replaced[C comparable, V any] struct {
	cell  C
	value V
}

// asOf returns the value of a cell in a state. now is its present value, and of returns the cells
// of the same kind that a step replaced.
//
// The search is linear. Steps are short, except for an initial state, which has few readers.
func asOf[C comparable, V any](s *state, cell C, now V, of func(*step) []replaced[C, V]) V {
	for next := s.next.Load(); next != nil; next = next.to.next.Load() {
		for _, r := range of(next) {
			if r.cell == cell {
				return r.value
			}
		}
	}
	return now
}

// host returns the view of a host, or nil.
func (s *state) host(k hostKey) *hostView {
	var now *hostView
	if h, ok := s.tables.hosts.Get(k); ok {
		now = h.view.Load()
	}
	return asOf(s, k, now, func(x *step) []replaced[hostKey, *hostView] { return x.hosts })
}

// contributions returns those at an address, which is in its usual form.
func (s *state) contributions(address string) located {
	return asOf(s, address, s.tables.located(address), func(x *step) []replaced[string, located] { return x.addresses })
}

// entry returns the view of an entry, or nil.
func (s *state) entry(e *entry) *entryView {
	return asOf(s, e, e.view.Load(), func(x *step) []replaced[*entry, *entryView] { return x.entries })
}
