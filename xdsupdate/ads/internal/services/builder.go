// SPDX-License-Identifier: Apache-2.0

// Package services makes the resources of services and their endpoints: clusters, load assignments,
// API listeners and routes. A Builder makes a Table of each push from the previous one, and shares
// all unchanged parts with it. A Table is immutable, and makes a resource on its first lookup. The
// package has no streams and no subscriptions.
package services

import (
	"cmp"
	"log/slog"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// Builder makes the tables of a discovery, push by push, each from the last published one. Its
// methods are for one goroutine at a time.
type Builder struct {
	discovery   registry.ServiceDiscovery   // or nil
	snapshotter registry.ServiceSnapshotter // nil if the discovery is none
	failures    *failure.List
	index       *xdsupdate.EndpointIndex
	logger      *slog.Logger

	// table has all hosts in their last published state. outdated are the hosts that may differ from the state in
	// services and endpoints, because no push of them was requested: each moment is compared with the previous
	// one, at the cost of the changes.
	table     *Table
	outdated  map[registry.Hostname]struct{}
	services  *registry.ServiceSet
	endpoints *xdsupdate.EndpointSnapshot
	// warned are the silent providers that were logged. unwarned means that services have changed
	// since warnSilent.
	warned   map[registry.ProviderID]bool
	unwarned bool

	Built
}

// Built is the result of Build, until it is published.
type Built struct {
	Next *Table
	// Changed are the changed hosts, and Affected the resources that may have changed.
	Changed  []ChangedHost
	Affected []Affected
	// current are the hosts that equal the moment.
	current []registry.Hostname
	// leftOut are the endpoints and ports that are newly left out.
	leftOut []leftOut
	// Incomplete means that the services could not be read, so that new ones are missing.
	Incomplete bool
}

// Affected is a resource that may have changed in the views of some namespaces; nil means all.
type Affected struct {
	TypeURL, Name string
	Namespaces    []string
}

// ChangedHost is a host that has changed.
type ChangedHost struct {
	Hostname registry.Hostname
	// EndpointsOnly means that its services are the same.
	EndpointsOnly bool
}

// NewBuilder returns a builder for the services of a discovery.
func NewBuilder(
	discovery registry.ServiceDiscovery, failures *failure.List, index *xdsupdate.EndpointIndex, logger *slog.Logger,
) *Builder {
	b := &Builder{
		discovery: discovery, failures: failures, index: index, logger: logger,
		table: &Table{}, outdated: make(map[registry.Hostname]struct{}),
	}
	b.snapshotter, _ = registry.As[registry.ServiceSnapshotter](discovery)
	return b
}

// HasSnapshots reports whether Read costs next to nothing.
func (b *Builder) HasSnapshots() bool { return b.snapshotter != nil }

// Read returns the services in a root, or else the present services of the discovery. exact reports
// whether all of them are from the root.
func (b *Builder) Read(root *xdsupdate.Root) (out Reader, exact bool) {
	b.failures.Undone(failure.Part{In: failure.InServices}.Call(func() error {
		if at, ok := b.snapshotter.(xdsupdate.RootReader); ok {
			out.set, exact = at.ServicesAt(b.snapshotter, root)
		}
		if b.snapshotter != nil && out.set == nil {
			out.set = b.snapshotter.ServiceSnapshot()
		}
		if out.set == nil && b.discovery != nil {
			out.list = withoutNil(b.discovery.Services())
		}
		out.ok = true
		return nil
	}))
	return out, exact
}

// Published replaces the table by the last result of Build, because clients are sent it. everything
// means that the push was one of everything.
func (b *Builder) Published(everything bool) {
	made := b.Built
	b.table, b.Built = made.Next, Built{}
	for _, name := range made.current { // clients can be sent it
		delete(b.outdated, name)
	}
	b.warnLeftOut(made.leftOut)
	b.unwarned = b.unwarned || slices.ContainsFunc(made.Changed, func(h ChangedHost) bool { return !h.EndpointsOnly })
	if everything && b.unwarned {
		b.unwarned = false
		b.warnSilent()
	}
}

// Reader finds the services of one moment by host name.
type Reader struct {
	set *registry.ServiceSet
	// list has all services if there is no set, sorted by CompareServices: to make a set of them takes longer than to
	// find the few that a push is about.
	list []*registry.Service
	// ok means that the services were read. If not, only the endpoints of hosts are updated.
	ok bool
}

// of returns the services of a host in the order of CompareServices.
func (s Reader) of(name registry.Hostname) []*registry.Service {
	if s.set == nil {
		compare := func(s *registry.Service, name registry.Hostname) int { return cmp.Compare(s.Hostname, name) }
		from, _ := slices.BinarySearchFunc(s.list, name, compare)
		to, _ := slices.BinarySearchFunc(s.list, name+"\x00", compare) // the next possible name
		return s.list[from:to]
	}
	services := withoutNil(s.set.Host(name))
	if len(services) > 1 {
		services = slices.Clone(services)
		slices.SortStableFunc(services, registry.CompareServices)
	}
	return services
}

// withoutNil returns a list of the program without nil elements.
func withoutNil[T any](list []*T) []*T {
	isNil := func(p *T) bool { return p == nil }
	if !slices.ContainsFunc(list, isNil) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isNil)
}
