// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// merged is the list of registries with their merged services. It is immutable.
//
// A read that finds newer services replaces it, in three steps:
//
//  1. The read gets the set of services of each registry. Nothing has changed if these are the sets
//     from which merged was built.
//  2. It merges the services of those hosts whose services differ between the sets.
//  3. It publishes the result. If another goroutine has published services or registries meanwhile,
//     the read starts again, so that it never replaces a newer state.
type merged struct {
	registrations []*registration
	// sets[i] are the services of registrations[i] that were merged into services.
	sets     []*registry.ServiceSet
	services *registry.ServiceSet
}

// current returns the merged services of the present state of all registries.
func (c *Controller) current() *merged {
	for {
		m := c.merged.Load()
		sets := m.read()
		if sets == nil {
			return m
		}
		next := m.with(m.registrations, sets)
		if c.merged.CompareAndSwap(m, next) {
			return next
		}
	}
}

// ServicesAt implements xdsupdate.RootReader.
func (c *Controller) ServicesAt(discovery registry.ServiceSnapshotter, root *xdsupdate.Root) (*registry.ServiceSet, bool) {
	if discovery != c {
		return nil, false
	}
	m, exact := c.current(), true
	of := func(reg *registration) *registry.ServiceSet {
		set, ok := reg.servicesAt(root)
		exact = exact && ok
		return set
	}
	members, ok := root.Members(&c.source).([]*registration)
	if ok && !slices.Equal(members, m.registrations) { // a registry has joined or left since
		sets := make([]*registry.ServiceSet, len(members))
		for i, reg := range members {
			sets[i] = of(reg)
		}
		m = m.with(members, sets)
	} else if sets := m.readWith(of); sets != nil { // some registries differ from the root
		m = m.with(m.registrations, sets)
	}
	return m.services, exact
}

// servicesAt returns the services of a registry in a root, or its present services if it has set
// none in the root.
func (r *registration) servicesAt(root *xdsupdate.Root) (set *registry.ServiceSet, exact bool) {
	if at, ok := r.snapshotter.(xdsupdate.RootReader); ok {
		if set, exact = at.ServicesAt(r.snapshotter, root); set != nil {
			return set, exact
		}
	}
	return r.snapshot(), false
}

// read returns the present services of each registry, or nil if they are identical to m.sets.
func (m *merged) read() []*registry.ServiceSet { return m.readWith((*registration).snapshot) }

func (m *merged) readWith(of func(*registration) *registry.ServiceSet) (sets []*registry.ServiceSet) {
	for i, reg := range m.registrations {
		now := of(reg)
		if now == m.sets[i] {
			continue
		}
		if sets == nil {
			sets = slices.Clone(m.sets)
		}
		sets[i] = now
	}
	return sets
}

// with returns the state for other registries or sets. It merges only the hosts that differ from m.
func (m *merged) with(registrations []*registration, sets []*registry.ServiceSet) *merged {
	next := &merged{registrations: registrations, sets: sets, services: m.services}
	switch {
	case len(sets) == 1 && sets[0] != nil:
		next.services = sets[0] // a single registry needs no merge
		return next
	case !slices.ContainsFunc(m.sets, func(s *registry.ServiceSet) bool { return s != nil }):
		next.services = m.services.WithHosts(next.mergeAll) // the first read
		return next
	}
	next.services = m.services.WithHosts(func(yield func(registry.Hostname, []*registry.Service) bool) {
		for host := range next.changedSince(m) {
			services := next.merge(host)
			if slices.Equal(services, m.services.Host(host)) {
				continue
			}
			if !yield(host, services) {
				return
			}
		}
	})
	return next
}

// changedSince yields each distinct host name whose services differ between m and an older state.
func (m *merged) changedSince(old *merged) iter.Seq[registry.Hostname] {
	var changes []iter.Seq[registry.Hostname]
	for i, reg := range m.registrations {
		var before *registry.ServiceSet
		if j := slices.Index(old.registrations, reg); j >= 0 {
			before = old.sets[j]
		}
		if before != m.sets[i] {
			changes = append(changes, m.sets[i].ChangedSince(before))
		}
	}
	for j, reg := range old.registrations {
		if !slices.Contains(m.registrations, reg) {
			changes = append(changes, (*registry.ServiceSet)(nil).ChangedSince(old.sets[j]))
		}
	}
	if len(changes) == 1 {
		return changes[0]
	}
	return eachOnce(changes)
}

func eachOnce(lists []iter.Seq[registry.Hostname]) iter.Seq[registry.Hostname] {
	return func(yield func(registry.Hostname) bool) {
		seen := map[registry.Hostname]struct{}{}
		for _, list := range lists {
			for host := range list {
				before := len(seen)
				if seen[host] = struct{}{}; len(seen) > before && !yield(host) {
					return
				}
			}
		}
	}
}
