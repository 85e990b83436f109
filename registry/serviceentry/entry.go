// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// entry is a ServiceEntry and everything that it contributes. Its endpoints come
// in groups, its members: one for each workload, inline endpoint or host that is
// its own endpoint.
type entry struct {
	object objectName
	*definition
	// bindings holds one for each host, in the order of the hosts.
	bindings []*binding
	// inline are the members that are written in the entry, in order.
	inline []*member
	// first is the head of the list of members that are selected.
	first *member

	// shown is what readers see of bindings; guarded by Controller.mu.
	shown []*binding
}

// binding is an entry as one of those that define a host.
type binding struct {
	entry *entry
	host  *host
	// services holds one for each address.
	services []*registry.Service
	// self is the member that stands for the host itself; nil if there are others.
	self *member
	// open is not nil for an entry with resolution DNS_ROUND_ROBIN, which
	// contributes one member at most, and of that only ports which no earlier entry
	// of the host serves.
	open *opening

	// shown and shownOpen are what readers see; guarded by Controller.mu.
	shown     []*registry.Service
	shownOpen *opening
}

// opening is what an entry with resolution DNS_ROUND_ROBIN contributes to a
// host. It is immutable.
type opening struct {
	member *member
	// ports says which endpoints of the member count.
	ports []bool
}

// member is the endpoints that one workload contributes to an entry: one for each
// port. All but the links is immutable.
type member struct {
	entry     *entry
	endpoints []registry.Endpoint
	// workload is nil unless the entry selected it.
	workload *workload
	// binding is set if the member belongs to one host of the entry only.
	binding *binding
	// previous and next link the members that an entry selected.
	previous, next *member
}

// members yields all members that count for a binding, unless it has an opening.
func (b *binding) members(yield func(*member) bool) {
	if b.self != nil && !yield(b.self) {
		return
	}
	for m := range b.entry.members {
		if !yield(m) {
			return
		}
	}
}

// members yields the members that all bindings have in common.
func (e *entry) members(yield func(*member) bool) {
	for _, m := range e.inline {
		if !yield(m) {
			return
		}
	}
	for m := e.first; m != nil; m = m.next {
		if !yield(m) {
			return
		}
	}
}

func (e *entry) link(m *member) {
	if m.next = e.first; m.next != nil {
		m.next.previous = m
	}
	e.first = m
}

func (e *entry) unlink(m *member) {
	if m.previous != nil {
		m.previous.next = m.next
	} else {
		e.first = m.next
	}
	if m.next != nil {
		m.next.previous = m.previous
	}
	m.previous, m.next = nil, nil
}

// leader returns the member that comes first: inline endpoints in their order,
// workloads by kind, namespace and name, pods first.
func (b *binding) leader() *member {
	if b.self != nil {
		return b.self
	}
	if len(b.entry.inline) > 0 {
		return b.entry.inline[0]
	}
	var leader *member
	for m := range b.entry.members {
		if leader == nil || m.workload.compare(leader.workload) < 0 {
			leader = m
		}
	}
	return leader
}

// bindingOf returns the binding of the entry to a host with the resolution.
func (e *entry) bindingOf(hostname registry.Hostname) *binding {
	i := slices.IndexFunc(e.bindings, func(b *binding) bool { return b.host.hostname == hostname })
	if i < 0 {
		return nil
	}
	return e.bindings[i]
}

// compare is the order in which the entries of a host contribute: the oldest
// first, then by name.
func (b *binding) compare(c *binding) int {
	if t := b.entry.created.Compare(c.entry.created); t != 0 {
		return t
	}
	return b.entry.object.compare(c.entry.object)
}
