// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// putEntry takes the new state of an entry.
func (b *batch) putEntry(d *definition, hosts []hostDefinition) {
	name := nameOf(d.config)
	s := b.space(name.namespace)
	e := s.entries[name.name]
	if e == nil {
		e = &entry{definition: d, name: name}
		s.entries[name.name] = e
		b.replaceEntry(e, nil, hosts)
		return
	}
	old := e.definition
	b.removeBindings(e, func(bi *binding) bool { return findHost(hosts, bi.host.hostname) != nil })
	if !d.sameShape(old) || !d.sameSelection(old) {
		b.deselect(e)
	}
	e.definition = d
	if !d.created().Equal(old.created()) {
		for _, bi := range e.bindings {
			bi.host.detach(bi)
			bi.host.attach(bi)
			b.work(bi.host)
		}
	}
	for _, bi := range e.bindings {
		b.setRoundRobin(bi, e.resolution == registry.DNSRoundRobinLB)
	}
	b.replaceEntry(e, old, hosts)
}

// setRoundRobin makes all contributions of a binding count, or only the ones in its roundRobin.
func (b *batch) setRoundRobin(bi *binding, is bool) {
	switch {
	case is && bi.roundRobin == nil:
		b.touch(bi.entry)
		for m := range bi.contributions {
			b.excludeContribution(m, bi)
		}
		bi.roundRobin = &roundRobin{}
	case !is && bi.roundRobin != nil:
		b.touch(bi.entry)
		w := b.work(bi.host)
		w.removed = bi.roundRobin.appendTo(w.removed)
		bi.roundRobin = nil
		for m := range bi.contributions {
			b.includeContribution(m, bi)
		}
	}
}

// replaceEntry completes putEntry: e has the new definition, old is the one
// before or nil.
func (b *batch) replaceEntry(e *entry, old *definition, hosts []hostDefinition) {
	b.putInline(e, old)
	b.putHosts(e, old, hosts)
	if e.selects && (old == nil || !e.sameShape(old) || !e.sameSelection(old)) {
		b.selectAll(e)
	}
}

// deleteEntry takes an entry away.
func (b *batch) deleteEntry(name objectName) {
	s := b.space(name.namespace)
	e := s.entries[name.name]
	if e == nil {
		b.dropSpace(name.namespace)
		return
	}
	b.deselect(e)
	delete(s.entries, name.name)
	b.dropSpace(name.namespace)
	b.removeBindings(e, func(*binding) bool { return false })
	for m := e.inline; m != nil; m = m.next {
		b.removeContribution(m)
	}
	e.inline = nil
}

// removeBindings takes the hosts away that an entry is not to keep.
func (b *batch) removeBindings(e *entry, keep func(*binding) bool) {
	if !slices.ContainsFunc(e.bindings, func(bi *binding) bool { return !keep(bi) }) {
		return
	}
	kept := make([]*binding, 0, len(e.bindings))
	for _, bi := range e.bindings {
		if keep(bi) {
			kept = append(kept, bi)
			continue
		}
		w := b.work(bi.host)
		if bi.roundRobin != nil {
			w.removed = bi.roundRobin.appendTo(w.removed)
		} else {
			for m := range e.contributions {
				b.excludeContribution(m, bi)
			}
		}
		if bi.self != nil {
			b.removeContribution(bi.self, bi)
			bi.self = nil
		}
		for _, s := range bi.services {
			b.noteService(bi.host, nil, s, registry.EventDelete)
		}
		bi.services = nil
		bi.host.detach(bi)
	}
	e.bindings = kept
	b.touch(e)
}

// putHosts brings the hosts and services of an entry up to date. Its other contributions already
// follow the new definition.
func (b *batch) putHosts(e *entry, old *definition, hosts []hostDefinition) {
	retargeted := old != nil && !slices.Equal(old.targets, e.targets)
	bindings := e.bindings
	if !slices.EqualFunc(bindings, hosts, func(bi *binding, d hostDefinition) bool { return bi.host.hostname == d.hostname }) {
		bindings = make([]*binding, len(hosts))
		b.touch(e)
	}
	for i := range hosts {
		d := &hosts[i]
		bi := e.bindingOf(d.hostname)
		if bi == nil {
			bi = b.bind(e, d.hostname)
		}
		b.putServices(bi, d.services, retargeted)
		b.putSelf(bi, d.hostname, old)
		if bindings[i] != bi {
			bindings[i] = bi
		}
	}
	e.bindings = bindings
}

// bind makes an entry define one more host, with all its contributions.
func (b *batch) bind(e *entry, hostname registry.Hostname) *binding {
	h := b.host(hostKey{e.config.Namespace, hostname})
	bi := &binding{entry: e, host: h}
	if e.resolution == registry.DNSRoundRobinLB {
		bi.roundRobin = &roundRobin{}
	}
	h.attach(bi)
	b.work(h)
	for m := range e.contributions {
		b.includeContribution(m, bi)
	}
	return bi
}

// putSelf makes the host its own endpoint, or no more.
func (b *batch) putSelf(bi *binding, hostname registry.Hostname, old *definition) {
	e := bi.entry
	if bi.self != nil {
		if e.hostIsEndpoint && e.sameShape(old) {
			return
		}
		b.removeContribution(bi.self, bi)
		bi.self = nil
	}
	if e.hostIsEndpoint {
		bi.self = b.conversion.selfContribution(e, e.definition, hostname)
		b.addContribution(bi.self, bi)
	}
}

// putServices replaces the services of a binding. It keeps equal services unless target ports have
// changed.
func (b *batch) putServices(bi *binding, services []*registry.Service, retargeted bool) {
	gone := bi.services
	if !retargeted && slices.EqualFunc(gone, services, sameService) {
		return
	}
	for i, s := range services {
		switch t := withAddress(gone, s.DefaultAddress); {
		case t == nil:
			b.noteService(bi.host, nil, s, registry.EventAdd)
		case !retargeted && sameService(t, s):
			services[i] = t
		default:
			b.noteService(bi.host, t, s, registry.EventUpdate)
		}
	}
	for _, t := range gone {
		if withAddress(services, t.DefaultAddress) == nil {
			b.noteService(bi.host, nil, t, registry.EventDelete)
		}
	}
	// If only the order of the addresses changed, proxies need not know; but it
	// decides which service GetService returns.
	b.work(bi.host).services = true
	bi.services = services
	b.touch(bi.entry)
}

func sameService(s, t *registry.Service) bool {
	return s.Equal(t) && s.CreationTime.Equal(t.CreationTime)
}

func withAddress(services []*registry.Service, address string) *registry.Service {
	i := slices.IndexFunc(services, func(s *registry.Service) bool { return s.DefaultAddress == address })
	if i < 0 {
		return nil
	}
	return services[i]
}
