// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
)

// newState makes the next state.
func (b *batch) newState(prev *state) *state {
	next := &state{tables: b.tables, settings: b.settings, services: prev.services}
	if slices.ContainsFunc(b.hosts, func(h *host) bool { return h.work.services }) { // most changes are of endpoints
		next.services = prev.services.WithHosts(b.servicesByName)
	}
	if next.allocated = prev.allocated; next.services != prev.services {
		next.allocated = b.allocation(next.services)
	}
	return next
}

// commit makes the next state visible to readers as soon as it is published. It does the first two
// steps in the comment of state.
func (b *batch) commit(prev, next *state) {
	prev.next.Store(b.stepTo(next))
	for _, h := range b.hosts {
		switch was := h.view.Load(); {
		case h.work.view == nil:
			b.tables.hosts.Delete(h.hostKey)
			h.view.Store(nil)
		case was == nil:
			h.view.Store(h.work.view)
			b.tables.hosts.Set(h.hostKey, h)
		case h.work.view != was:
			h.view.Store(h.work.view)
		}
	}
	for _, e := range b.entries {
		e.view.Store(e.newView())
	}
	for address, l := range b.located {
		b.tables.locate(address, l)
	}
}

// stepTo returns the step to the next state: the cells that the batch is going to
// change, with their present values.
func (b *batch) stepTo(next *state) *step {
	x := newStep(next, len(b.hosts), len(b.located), len(b.workloads))
	for _, h := range b.hosts {
		x.hosts = append(x.hosts, replaced[hostKey, *hostView]{h.hostKey, h.view.Load()})
	}
	for _, e := range b.entries {
		x.entries = append(x.entries, replaced[*entry, *entryView]{e, e.view.Load()})
	}
	for _, w := range b.workloads {
		if changed := w.curr.or(w.prev); !changed.foreign() {
			x.own = append(x.own, replaced[objectName, *workload]{nameOf(changed.config.Load()), w.prev})
		}
	}
	for address := range b.located {
		x.addresses = append(x.addresses, replaced[string, located]{address, b.tables.located(address)})
	}
	return x
}

// setView makes the next view of the host: none if no entry defines it any more.
func (h *host) setView(endpoints cow.Sorted[*registry.Endpoint]) {
	w := h.work
	w.view = h.view.Load()
	switch {
	case len(h.bindings) == 0:
		w.view = nil
	case w.services:
		w.view = &hostView{services: h.services(), endpoints: endpoints}
	case len(w.changes) > 0:
		w.view = &hostView{services: w.view.services, endpoints: endpoints}
	}
}

// newView returns the view of the entry for readers, or nil if the entry was deleted.
func (e *entry) newView() *entryView {
	if len(e.bindings) == 0 {
		return nil
	}
	v := &entryView{bindings: make([]bindingView, len(e.bindings))}
	for i, b := range e.bindings {
		v.bindings[i] = bindingView{host: b.host, services: b.services, roundRobin: b.roundRobin}
	}
	return v
}

// servicesByName yields each host name with changed services, and its services in all namespaces in
// the order of precedence. Services of one entry stay in the order of its addresses.
func (b *batch) servicesByName(yield func(registry.Hostname, []*registry.Service) bool) {
	var changed map[registry.Hostname][]*host
	for _, h := range b.hosts {
		if h.work.services {
			if changed == nil {
				changed = map[registry.Hostname][]*host{}
			}
			changed[h.hostname] = append(changed[h.hostname], h)
		}
	}
	services := b.publisher.State().services
	for hostname, hosts := range changed {
		list := slices.DeleteFunc(slices.Clone(services.Host(hostname)), func(s *registry.Service) bool {
			return slices.ContainsFunc(hosts, func(h *host) bool { return h.namespace == s.Attributes.Namespace })
		})
		for _, h := range hosts {
			list = append(list, h.services()...)
		}
		slices.SortStableFunc(list, comparePrecedence)
		if !yield(hostname, list) {
			return
		}
	}
}

// comparePrecedence is registry.ComparePrecedence, but for services of one entry,
// which are in the order of its addresses.
func comparePrecedence(s, t *registry.Service) int {
	if s.Attributes.Namespace == t.Attributes.Namespace && s.Attributes.ObjectName == t.Attributes.ObjectName {
		return 0
	}
	return registry.ComparePrecedence(s, t)
}

// host returns the host of a key, a new one if there is none.
func (b *batch) host(k hostKey) *host {
	if h, ok := b.tables.hosts.Get(k); ok {
		return h
	}
	h := b.newHosts[k]
	if h == nil {
		h = &host{hostKey: k}
		b.newHosts[k] = h
		b.work(h)
	}
	return h
}
