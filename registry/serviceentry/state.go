// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// state is what readers see at one moment: everything that they ask in one query,
// or in several with one state, is of that moment, and they take no lock.
//
// Services and settings are immutable values. What most events change is in cells,
// which change in place: the views of entries and of hosts, and the tables of hosts
// and of addresses. Persistent maps, which would be simpler, cost 20 to 30 % more time
// for each change, and three times the memory traffic. So a state is a position in the
// history of the cells instead. A change of cells has three steps:
//
//  1. A step is made, which has the values that are going to be replaced, and is
//     linked to the present state.
//  2. The cells get their new values.
//  3. The next state is published.
//
// A reader loads a cell first and then follows the steps that lead away from its
// state: the first one that replaced the cell has the value that the reader wants;
// if there is none the cell has it. A cell that shows a new value has a step that
// is linked already, so that the reader cannot miss it. For a reader of the
// present state, which is nearly every one, there is no step. Links go forward
// only: when the last reader of a state is gone, the garbage collector takes the
// state with the values that only its readers could have wanted.
type state struct {
	tables   *tables
	settings settings
	services *registry.ServiceSet
	// allocated is services with the addresses that AllocateByHash gives them, made
	// when it is asked for; nil for other options.
	allocated func() *allocation
	// next leads to the next state; nil as long as there is none.
	next atomic.Pointer[step]
}

// tables are the cells that are found by a key. Only batches change them.
type tables struct {
	// hosts are those that have a view.
	hosts     pmap.Live[hostKey, *host]
	addresses *addressTable
	// more has the contributions at an address besides the first.
	more pmap.Live[string, []*contribution]
}

// hostView is a host name in one namespace. It is immutable, as all views are.
type hostView struct {
	// services are those of all entries that define the host, the oldest entry
	// first.
	services  []*registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
}

// entryView is what an entry contributes, besides its contributions.
type entryView struct{ bindings []bindingView }

// bindingView is what an entry contributes to one of its hosts.
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

// asOf returns the value of a cell as readers of a state see it, from the one that
// it has now. of returns the cells of that kind that a step replaced.
//
// Steps are searched from end to end. They are short, but for those of an initial
// state, which has few readers.
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
