// SPDX-License-Identifier: Apache-2.0

// Package services makes the resources of services and their endpoints: clusters, load
// assignments, API listeners and routes. A Builder makes a Table of one moment of the one
// before, and shares with it whatever did not change; a Table is immutable, and makes a
// resource when it is asked for it. It knows of no stream and no subscription.
package services

import (
	"log/slog"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// Builder makes the tables of a discovery, push by push, each of the one that was
// published last. Its methods are for one goroutine at a time.
type Builder struct {
	discovery   registry.ServiceDiscovery
	snapshotter registry.ServiceSnapshotter // nil: the discovery is none
	customize   Customizer
	failures    *failure.List
	index       *xdsupdate.EndpointIndex
	logger      *slog.Logger

	// table has all hosts as they were published last; outdated are those that may have
	// been made of something else than there is now.
	table    *Table
	outdated outdated
	// warned are those that were warned of because they have not called the server.
	// unwarned: services have changed since warnSilent.
	warned   providers
	unwarned bool

	Built
}

// Built is what a push has made of the services, until it is published.
type Built struct {
	Next *Table
	// Changed are the hosts that differ, and Affected the resources that may.
	Changed  []ChangedHost
	Affected []Affected
	// current are hosts that are now as the moment has them.
	current []registry.Hostname
	// leftOut are the endpoints and ports that are left out from now on.
	leftOut []leftOut
	// Incomplete: services could not be read, so that there is none of those that are new.
	Incomplete bool
}

// ChangedHost is a host that has changed.
type ChangedHost struct {
	Hostname registry.Hostname
	// EndpointsOnly: its services are the same.
	EndpointsOnly bool
}

// NewBuilder returns a builder of the services of a discovery. A nil Customizer changes
// nothing.
func NewBuilder(
	discovery registry.ServiceDiscovery, customize Customizer, failures *failure.List, index *xdsupdate.EndpointIndex, logger *slog.Logger,
) *Builder {
	b := &Builder{
		discovery: discovery, customize: customize, failures: failures, index: index, logger: logger,
		table: &Table{failures: failures},
	}
	b.snapshotter, _ = registry.As[registry.ServiceSnapshotter](discovery)
	return b
}

// HasSnapshots reports whether reading costs next to nothing.
func (b *Builder) HasSnapshots() bool { return b.snapshotter != nil }

// Read returns the services as a root has them, or else as the discovery has them now, and
// whether all of them are the root's.
func (b *Builder) Read(root *xdsupdate.Root) (out Reader, exact bool) {
	err := failure.Part{In: failure.InServices}.Call(func() error {
		if at, ok := b.snapshotter.(xdsupdate.RootReader); ok {
			out.set, exact = at.ServicesAt(b.snapshotter, root)
		}
		if b.snapshotter != nil && out.set == nil {
			out.set = b.snapshotter.ServiceSnapshot()
		}
		if out.set == nil {
			out.list = withoutNil(b.discovery.Services())
		}
		out.ok = true
		return nil
	})
	b.failures.Undone(err)
	return out, exact
}

// Renew has the resources of hosts built again. It follows Build.
func (b *Builder) Renew(names []registry.Hostname) {
	hosts := make(map[registry.Hostname]*host)
	for _, name := range names {
		if before := b.Next.host(name); before != nil && hosts[name] == nil {
			after := before.renewed(b.customize)
			hosts[name] = after
			b.Affected = appendAffected(b.Affected, before, after)
		}
	}
	b.Next = b.Next.with(hosts)
}

// Published takes that clients are sent what was built last. everything: for a push of
// everything.
func (b *Builder) Published(everything bool) {
	made := b.Built
	b.table, b.Built = made.Next, Built{}
	b.outdated.published(made.current)
	b.warnLeftOut(made.leftOut)
	b.unwarned = b.unwarned || slices.ContainsFunc(made.Changed, func(h ChangedHost) bool { return !h.EndpointsOnly })
	if everything && b.unwarned {
		b.unwarned = false
		b.warnSilent()
	}
}
