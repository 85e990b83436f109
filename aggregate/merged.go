// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"sort"
	"strings"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// merged is what the services of the registries make together. It is immutable.
type merged struct {
	registrations []*registration
	// serving are the registries that proxies of a cluster may ask, for the
	// clusters of registries; others are for proxies of any other cluster.
	serving map[registry.ClusterID][]*registration
	others  []*registration
	// lists are the services of each registry from which the rest was made, and
	// sources what it takes to see whether they still are, side by side.
	lists   [][]*registry.Service
	sources []source
	// services is sorted by registry.CompareServices; first has the answers of
	// GetService, which are all among them.
	services []*registry.Service
	first    pmap.Map[registry.Hostname, *registry.Service]
}

// current returns what the registries have now. Registries hand out the same
// slice as long as nothing has changed, so this is all that it takes to know.
func (c *Controller) current() *merged {
	for {
		m := c.merged.Load()
		at := m.stale()
		if at < 0 {
			return m
		}
		lists := slices.Clone(m.lists)
		for i := at; i < len(lists); i++ {
			lists[i] = m.registrations[i].instance.Services()
		}
		next := m.with(m.registrations, lists)
		// If somebody was faster, what was read may be older than what is there.
		if c.merged.CompareAndSwap(m, next) {
			return next
		}
	}
}

// stale returns the first registry whose services are not those in lists, or -1.
func (m *merged) stale() int {
	for i := range m.sources {
		if s := &m.sources[i]; !s.is(s.discovery.Services()) {
			return i
		}
	}
	return -1
}

// source is a registry with the identity of the slice that it handed out last.
type source struct {
	discovery registry.ServiceDiscovery
	first     **registry.Service
	length    int
}

func newSource(discovery registry.ServiceDiscovery, services []*registry.Service) source {
	s := source{discovery: discovery, length: len(services)}
	if len(services) > 0 {
		s.first = &services[0]
	}
	return s
}

// is reports whether services is the slice that the registry handed out last.
func (s *source) is(services []*registry.Service) bool {
	return len(services) == s.length && (s.length == 0 || &services[0] == s.first)
}

// identical reports whether two slices are one.
func identical(a, b []*registry.Service) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// with returns what other registries or lists make: m with the hosts brought up
// to date that differ.
func (m *merged) with(registrations []*registration, lists [][]*registry.Service) *merged {
	hosts := m.changed(registrations, lists)
	next := &merged{
		registrations: registrations, serving: m.serving, others: m.others,
		lists: lists, sources: make([]source, len(lists)), services: m.services, first: m.first,
	}
	for i, reg := range registrations {
		next.sources[i] = newSource(reg.instance, lists[i])
	}
	if !slices.Equal(registrations, m.registrations) {
		next.serve()
	}
	if len(hosts) == 0 {
		return next
	}
	next.services = make([]*registry.Service, 0, len(m.services)+len(hosts))
	first := newEditor(m.first, len(hosts))
	old := cursor{list: m.services}
	cursors := make([]cursor, len(lists))
	for i := range cursors {
		cursors[i].list = lists[i]
	}
	var group []*registry.Service
	for _, host := range hosts {
		next.services = append(next.services, old.until(host)...)
		old.take(host)
		var winner *registry.Service
		group, winner = next.merge(host, cursors, group[:0])
		next.services = append(next.services, group...)
		first.set(host, winner)
	}
	next.services = append(next.services, old.rest()...)
	next.first = first.done()
	return next
}

// serve finds out which registries serve which proxies.
func (m *merged) serve() {
	m.serving, m.others = map[registry.ClusterID][]*registration{"": m.registrations}, nil
	for _, of := range m.registrations {
		if _, ok := m.serving[of.cluster]; ok {
			continue
		}
		for _, reg := range m.registrations {
			if reg.serves(of.cluster) {
				m.serving[of.cluster] = append(m.serving[of.cluster], reg)
			}
		}
	}
	for _, reg := range m.registrations {
		if !reg.kubernetes {
			m.others = append(m.others, reg)
		}
	}
}

// serversOf returns the registries that a proxy of a cluster may ask.
func (m *merged) serversOf(cluster registry.ClusterID) []*registration {
	if registrations, ok := m.serving[cluster]; ok {
		return registrations
	}
	return m.others
}

// changed returns the hosts, sorted, whose services are not the same in the other
// registries and lists.
func (m *merged) changed(registrations []*registration, lists [][]*registry.Service) []registry.Hostname {
	var hosts []registry.Hostname
	add := func(s *registry.Service) {
		if n := len(hosts); n == 0 || hosts[n-1] != s.Hostname {
			hosts = append(hosts, s.Hostname)
		}
	}
	for i, reg := range m.registrations {
		var now []*registry.Service
		if j := slices.Index(registrations, reg); j >= 0 {
			now = lists[j]
		}
		difference(m.lists[i], now, add)
	}
	for j, reg := range registrations {
		if !slices.Contains(m.registrations, reg) {
			difference(nil, lists[j], add)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// difference calls add with every service that is in one of two lists only.
func difference(a, b []*registry.Service, add func(*registry.Service)) {
	if identical(a, b) {
		return
	}
	for len(a) > 0 && len(b) > 0 {
		if a[0] == b[0] {
			a, b = a[1:], b[1:]
			continue
		}
		c := strings.Compare(string(a[0].Hostname), string(b[0].Hostname))
		if c <= 0 {
			add(a[0])
			a = a[1:]
		}
		if c >= 0 {
			add(b[0])
			b = b[1:]
		}
	}
	for _, s := range a {
		add(s)
	}
	for _, s := range b {
		add(s)
	}
}

// cursor goes through a sorted list of services, from host to later host.
type cursor struct {
	list []*registry.Service
	at   int
}

// until returns what comes before a host, and moves there.
func (c *cursor) until(host registry.Hostname) []*registry.Service {
	from := c.at
	c.at += gallop(c.list[c.at:], func(s *registry.Service) bool { return s.Hostname >= host })
	return c.list[from:c.at]
}

// take returns the services of a host, and moves behind them.
func (c *cursor) take(host registry.Hostname) []*registry.Service {
	c.until(host)
	from := c.at
	for c.at < len(c.list) && c.list[c.at].Hostname == host {
		c.at++
	}
	return c.list[from:c.at]
}

func (c *cursor) rest() []*registry.Service { return c.list[c.at:] }

// gallop is sort.Search that is fast if the answer is near the beginning.
func gallop(list []*registry.Service, ok func(*registry.Service) bool) int {
	high := 1
	for high < len(list) && !ok(list[high-1]) {
		high *= 2
	}
	low := high / 2
	high = min(high, len(list))
	return low + sort.Search(high-low, func(i int) bool { return ok(list[low+i]) })
}

// editor changes a persistent map in few or many places.
type editor struct {
	few  pmap.Map[registry.Hostname, *registry.Service]
	many *pmap.Live[registry.Hostname, *registry.Service]
}

// manyHosts is from how many changes on a map is made anew, in fractions of its
// size.
const manyHosts = 8

func newEditor(m pmap.Map[registry.Hostname, *registry.Service], changes int) *editor {
	e := &editor{few: m}
	if changes*manyHosts > m.Len() && changes > manyHosts {
		e.many = &pmap.Live[registry.Hostname, *registry.Service]{}
		for host, s := range m.All() {
			e.many.Set(host, s)
		}
	}
	return e
}

// set sets the service of a host; nil: it has none.
func (e *editor) set(host registry.Hostname, s *registry.Service) {
	switch {
	case e.many != nil && s == nil:
		e.many.Delete(host)
	case e.many != nil:
		e.many.Set(s.Hostname, s)
	case s == nil:
		e.few = e.few.Delete(host)
	default:
		e.few = e.few.Set(s.Hostname, s)
	}
}

func (e *editor) done() pmap.Map[registry.Hostname, *registry.Service] {
	if e.many != nil {
		return e.many.Snapshot()
	}
	return e.few
}
