// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

const sourceSnapshotter = "registry.ServiceSnapshotter"

func snapshotChecks() []check {
	return []check{
		{
			Name: "Snapshot/Agrees", Source: sourceSnapshotter,
			Promise: "a snapshot has what Services and GetService return, after any change",
			Skip:    noSnapshots, Run: snapshotAgrees,
		},
		{
			Name: "Snapshot/Same", Source: sourceSnapshotter,
			Promise: "as long as the services do not change ServiceSnapshot returns the same pointer",
			Skip:    noSnapshots, Run: snapshotSame,
		},
		{
			Name: "Snapshot/Changed", Source: sourceSnapshotter,
			Promise: "a snapshot is made from the one before: the services of other host names are the very same objects",
			Skip:    noSnapshots, Run: snapshotChanged,
		},
		{
			Name: "Snapshot/Immutable", Source: sourceSnapshotter,
			Promise: "a snapshot does not change",
			Skip:    noSnapshots, Run: snapshotImmutable,
		},
		{
			Name: "Snapshot/Fresh", Source: sourceSnapshotter,
			Promise: "when a handler runs, a snapshot shows the new state",
			Skip:    noSnapshots, Run: snapshotFresh,
		},
	}
}

func (s *suite) snapshotter() registry.ServiceSnapshotter {
	snapshotter, _ := registry.As[registry.ServiceSnapshotter](s.reg)
	return snapshotter
}

func noSnapshots(s *suite) string {
	if snapshotter := s.snapshotter(); snapshotter == nil || snapshotter.ServiceSnapshot() == nil {
		return "the registry is no ServiceSnapshotter"
	}
	return ""
}

// expectSnapshot requires that the snapshot equals the results of reads.
func (s *suite) expectSnapshot() *registry.ServiceSet {
	s.Helper()
	set := s.snapshotter().ServiceSnapshot()
	if set == nil {
		s.Stop("ServiceSnapshot() became nil")
	}
	services := s.reg.Services()
	if !slices.Equal(set.List(), services) {
		s.Broken("ServiceSnapshot() lists %v, Services() is %v", describeAll(set.List()), describeAll(services))
	}
	for _, host := range []registry.Hostname{shop().hostname, bank().hostname, "unknown.example.com"} {
		if got, want := set.Get(host), s.reg.GetService(host); got != want {
			s.Broken("ServiceSnapshot().Get(%s) = %s, GetService returns %s", host, describe(got), describe(want))
		}
	}
	return set
}

func describeAll(services []*registry.Service) []string {
	out := make([]string, len(services))
	for i, service := range services {
		out[i] = describe(service)
	}
	return out
}

func snapshotAgrees(s *suite) {
	s.expectSnapshot()
	older := shop()
	older.namespace, older.age = "zoo", 60
	for _, f := range []fixture{shop(), bank(), older, shop().onPorts(81), bank().onPorts(80)} {
		s.set(f)
		s.expectSnapshot()
	}
	for _, f := range []fixture{older, shop(), bank()} {
		s.remove(f)
		s.expectSnapshot()
	}
}

func snapshotSame(s *suite) {
	s.set(shop())
	set := s.expectSnapshot()
	s.set(shop())
	s.reg.GetService(shop().hostname)
	if s.snapshotter().ServiceSnapshot() != set {
		s.Broken("another pointer although nothing changed")
	}
}

func snapshotChanged(s *suite) {
	other := shop()
	other.namespace = "abroad"
	for _, f := range []fixture{shop(), bank()} {
		s.set(f)
	}
	for _, change := range []struct {
		what   string
		change func()
		want   registry.Hostname
	}{
		{"an update", func() { s.set(bank().onPorts(81)) }, bank().hostname},
		{"a second service of the host name", func() { s.set(other) }, shop().hostname},
		{"a removal", func() { s.remove(bank()) }, bank().hostname},
		{"an addition", func() { s.set(bank()) }, bank().hostname},
	} {
		before := s.expectSnapshot()
		change.change()
		got := slices.Sorted(s.expectSnapshot().ChangedSince(before))
		if want := []registry.Hostname{change.want}; !slices.Equal(got, want) {
			s.Broken("after %s of %s the snapshot differs in %v", change.what, change.want, got)
		}
	}
}

func snapshotImmutable(s *suite) {
	s.set(shop())
	s.set(bank())
	set := s.expectSnapshot()
	before := snapshot(set.List())
	s.set(bank().onPorts(81))
	s.remove(shop())
	s.expectSnapshot()
	if after := snapshot(set.List()); !slices.Equal(before, after) || describe(set.Get(shop().hostname)) != describe(shop().service()) {
		s.Broken("a snapshot became %v, was %v", after, before)
	}
}

func snapshotFresh(s *suite) {
	s.reg.AppendServiceHandler(func(_, curr *registry.Service, event registry.Event) {
		found := s.snapshotter().ServiceSnapshot().Get(curr.Hostname)
		if event == registry.EventDelete && found != nil || event != registry.EventDelete && describe(found) != describe(curr) {
			s.Broken("in the handler of %s %s the snapshot has %s", event, describe(curr), describe(found))
		}
	})
	s.catchUp()
	s.set(shop())
	s.set(shop().onPorts(80, 81))
	s.remove(shop())
}
