// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// hostKey names what shares a list of endpoints.
type hostKey struct {
	namespace string
	hostname  registry.Hostname
}

func (k hostKey) compare(l hostKey) int {
	return cmp.Or(strings.Compare(k.namespace, l.namespace), cmp.Compare(k.hostname, l.hostname))
}

// host is a host name in a namespace, which any number of entries define.
type host struct {
	hostKey
	// bindings are the entries that define the host, the oldest first.
	bindings []*binding
	// repeated counts the additional equals of an endpoint. Proxies get each endpoint once, for any
	// number of contributions.
	repeated map[*registry.Endpoint]int
	// dns: at least one endpoint is from an entry with resolution DNS or
	// DNS_ROUND_ROBIN.
	dns bool
	// work is the pending change in the current batch, or nil.
	work *hostWork
	// view is the view of readers, or nil.
	view atomic.Pointer[hostView]
}

// hostWork collects the changes of a host during a batch.
type hostWork struct {
	// added and removed are endpoints that entries contribute from now on, or no
	// more; an endpoint may be in both.
	added, removed []*registry.Endpoint
	// event is EventAdd or EventUpdate if a service was added or changed.
	event registry.Event
	// services: the list of services is another one.
	services bool
	// push: a service was added, changed or removed.
	push bool
	// was is dns before the batch.
	was bool
	// changes are the endpoints that really changed.
	changes []xdsupdate.EndpointChange
	// view is what readers are going to see.
	view *hostView
}

func (h *host) attach(b *binding) {
	i, _ := slices.BinarySearchFunc(h.bindings, b, (*binding).compare)
	h.bindings = slices.Insert(h.bindings, i, b)
}

func (h *host) detach(b *binding) {
	if i := slices.Index(h.bindings, b); i >= 0 {
		h.bindings = slices.Delete(h.bindings, i, i+1)
	}
}

// add and remove record that the endpoints of a contribution count, or no more.
func (h *host) add(m *contribution) {
	for i := range m.endpoints {
		h.work.added = append(h.work.added, &m.endpoints[i])
	}
}

func (h *host) remove(m *contribution) {
	for i := range m.endpoints {
		h.work.removed = append(h.work.removed, &m.endpoints[i])
	}
}

// endpoints returns the endpoints in the view of readers.
func (h *host) endpoints() cow.Sorted[*registry.Endpoint] {
	if view := h.view.Load(); view != nil {
		return view.endpoints
	}
	return cow.Sorted[*registry.Endpoint]{}
}

// services returns the services of the host, in the order of the bindings.
func (h *host) services() []*registry.Service {
	if len(h.bindings) == 1 {
		return h.bindings[0].services
	}
	var out []*registry.Service
	for _, b := range h.bindings {
		out = append(out, b.services...)
	}
	return out
}

// updateRoundRobin brings up to date what entries with resolution DNS_ROUND_ROBIN contribute:
// the first contribution, on the ports that no entry before them serves. A port number
// belongs to the first entry that has it and any contribution, as in Istio 1.30.
func (h *host) updateRoundRobin(touch func(*entry)) {
	if !slices.ContainsFunc(h.bindings, func(b *binding) bool { return b.roundRobin != nil }) {
		return
	}
	taken := map[uint32]bool{}
	for _, b := range h.bindings {
		leader := b.leader()
		if b.roundRobin != nil {
			h.updateRoundRobinOf(b, leader, taken, touch)
		}
		if leader != nil {
			for _, p := range b.entry.ports {
				taken[p.Number] = true
			}
		}
	}
}

func (h *host) updateRoundRobinOf(b *binding, leader *contribution, taken map[uint32]bool, touch func(*entry)) {
	next := &roundRobin{}
	if leader != nil {
		next.contribution, next.ports = leader, make([]bool, len(b.entry.ports))
		for i, p := range b.entry.ports {
			next.ports[i] = !taken[p.Number]
			taken[p.Number] = true
		}
	}
	if next.contribution == b.roundRobin.contribution && slices.Equal(next.ports, b.roundRobin.ports) {
		return
	}
	h.work.removed = b.roundRobin.appendTo(h.work.removed)
	h.work.added = next.appendTo(h.work.added)
	b.roundRobin = next
	touch(b.entry)
}

func (r *roundRobin) appendTo(list []*registry.Endpoint) []*registry.Endpoint {
	for i, serves := range r.ports {
		if serves {
			list = append(list, &r.contribution.endpoints[i])
		}
	}
	return list
}

// contributesDNS reports whether an entry with resolution DNS or DNS_ROUND_ROBIN
// has an endpoint.
func (h *host) contributesDNS() bool {
	return slices.ContainsFunc(h.bindings, func(b *binding) bool {
		switch {
		case !b.entry.resolution.IsDNS():
			return false
		case b.roundRobin != nil:
			return slices.Contains(b.roundRobin.ports, true)
		default:
			for m := range b.contributions {
				return len(m.endpoints) > 0
			}
			return false
		}
	})
}
