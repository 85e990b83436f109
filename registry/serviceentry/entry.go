// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// entry is a ServiceEntry and everything that it contributes. Its endpoints come
// in groups, its contributions: one for each workload, inline endpoint or host that is
// its own endpoint.
type entry struct {
	*definition
	// name does not change.
	name objectName
	// bindings holds one for each host, in the order of the hosts.
	bindings []*binding
	// inline is the head of the list of contributions that are written in the entry, in
	// order.
	inline *contribution
	// selected are the contributions that the entry selects, in no order.
	selected []*contribution
	// view is the view of readers, or nil.
	view atomic.Pointer[entryView]
	// touched means that the batch is going to replace the view.
	touched bool
}

// binding is the definition of a host by an entry.
type binding struct {
	entry *entry
	host  *host
	// services holds one for each address.
	services []*registry.Service
	// self is the contribution for the host itself, or nil if there are others.
	self *contribution
	// roundRobin is not nil for an entry with resolution DNS_ROUND_ROBIN. Such an entry adds at
	// most one contribution, with only the ports that no earlier entry of the host serves.
	roundRobin *roundRobin
}

// roundRobin is the contribution of an entry with resolution DNS_ROUND_ROBIN to a host. It is
// immutable.
type roundRobin struct {
	contribution *contribution
	// ports says which endpoints of the contribution count.
	ports []bool
}

// contributions yields the contributions that all bindings have in common.
func (e *entry) contributions(yield func(*contribution) bool) {
	for m := e.inline; m != nil; m = m.next {
		if !yield(m) {
			return
		}
	}
	for _, m := range e.selected {
		if !yield(m) {
			return
		}
	}
}

// contributions yields the contributions that count for a binding, unless it has a roundRobin.
func (b *binding) contributions(yield func(*contribution) bool) {
	if b.self == nil || yield(b.self) {
		b.entry.contributions(yield)
	}
}

func (e *entry) addSelected(m *contribution) {
	m.position = int32(len(e.selected)) //nolint:gosec // there are fewer workloads than 2^31
	e.selected = append(e.selected, m)
}

func (e *entry) removeSelected(m *contribution) {
	last := len(e.selected) - 1
	moved := e.selected[last]
	e.selected[m.position], moved.position = moved, m.position
	e.selected[last] = nil
	e.selected = e.selected[:last]
}

// leader returns the contribution that comes first: inline endpoints in their order,
// workloads by kind, namespace and name, pods first.
func (b *binding) leader() *contribution {
	switch {
	case b.self != nil:
		return b.self
	case b.entry.inline != nil:
		return b.entry.inline
	case len(b.entry.selected) > 0:
		return slices.MinFunc(b.entry.selected, func(m, n *contribution) int { return m.workload.compare(n.workload) })
	default:
		return nil
	}
}

// bindingOf returns the binding of the entry to a host, or nil.
func (e *entry) bindingOf(hostname registry.Hostname) *binding {
	i := slices.IndexFunc(e.bindings, func(b *binding) bool { return b.host.hostname == hostname })
	if i < 0 {
		return nil
	}
	return e.bindings[i]
}

// compare is the order of the entries of a host: the oldest first, then by name.
func (b *binding) compare(c *binding) int {
	return cmp.Or(b.entry.created().Compare(c.entry.created()), b.entry.name.compare(c.entry.name))
}
