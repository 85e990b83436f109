// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// announcementKey finds the announcement of a state of a route configuration to clients that have
// another one.
type announcementKey struct{ base, of *resource.State }

// selectionState is the state of a selection at one moment.
type selectionState = difference.State[*selection]

// topic is a name that selections subscribe to.
type topic = index.Topic[*selection]

// selectionKey finds a selection: equal selections have equal keys, and selections with equal keys
// are nearly always equal.
type selectionKey struct {
	view     view
	typeURL  string
	wildcard bool
	sum      uint64 // of the hashes of the names
	count    int
}

// find returns the resource of a name for the selection, or nil.
func (s *selection) find(from resolver, name string) *resource.State {
	switch {
	case s.names(name):
		return from.named(s.typeURL, name)
	case s.wildcard:
		return from.covered(s.typeURL, name)
	default:
		return nil
	}
}

// served returns the resource for the snapshot under a name whose resource, or nil, was found. The result is nil,
// or an unavailable resource, too. It encodes the resource if necessary.
func (s *selection) served(from resolver, name string, r *resource.State) *resource.State {
	if from.make(r); r.Exists() || r.IsUnavailable() {
		return r
	}
	if s.typeURL != envoy.LoadAssignmentType || s.wildcard || !s.names(name) {
		return nil
	}
	cluster := from.named(envoy.ClusterType, name)
	if from.make(cluster); cluster.Exists() || cluster.IsUnavailable() {
		// A cluster that exists, but takes its endpoints from elsewhere, may use its last
		// assignment until it has found them.
		return nil
	}
	return resource.NewMarker(s.typeURL, name, resource.Tombstone)
}

// names reports whether a name is subscribed by name.
func (s *selection) names(name string) bool {
	_, found := slices.BinarySearchFunc(s.topics, name, func(t *topic, name string) int { return strings.Compare(t.Name, name) })
	return found
}

// prepare returns the first snapshot of a selection, or nil if a provider failed to list its
// resources. It is called without the lock, with the topics of the resolver's moment.
func (s *selection) prepare(from resolver, topics []*topic) (out *resource.Snapshot, failed failing) {
	var found []*resource.State
	add := func(name string, r *resource.State) {
		if now := s.served(from, name, r); now != nil && !now.IsUnavailable() {
			found = append(found, now)
		}
		failed.note(name, r)
	}
	if s.wildcard && !from.all(s.typeURL, add) {
		return nil, nil
	}
	for _, t := range topics {
		add(t.Name, from.named(s.typeURL, t.Name))
	}
	if s.wildcard { // topics are sorted and unique
		slices.SortFunc(found, resource.CompareNames)
		found = slices.CompactFunc(found, func(a, b *resource.State) bool { return a.Name == b.Name })
	}
	return resource.NewSnapshot(found), failed
}

// refresh brings the snapshot up to date, and reports whether it changed.
func (s *selection) refresh(from resolver) bool {
	if len(s.dirty) == 0 || s.snapshot == nil {
		return false
	}
	slices.Sort(s.dirty)
	var edits []resource.Edit
	for i, name := range s.dirty {
		if i > 0 && name == s.dirty[i-1] {
			continue
		}
		found := s.find(from, name)
		now, old := s.served(from, name, found), s.snapshot.Find(name)
		s.failing.note(name, found)
		if now.IsUnavailable() || now != nil && old != nil && now.Same(old) {
			continue
		}
		edits = append(edits, resource.Edit{Name: name, Resource: now})
	}
	s.dirty = nil
	next := s.snapshot.With(edits)
	changed := next != s.snapshot
	s.publish(next)
	return changed
}

// refresh brings the selection of a subscription up to date with its new names, and sends responses
// to its other subscribers. It takes the lock, and encodes without it.
func (c *cache) refresh(sub *subscription) {
	var list []wanted
	c.locked(func() {
		s := sub.selection
		if s == nil || s.snapshot == nil {
			return
		}
		for _, name := range s.dirty {
			list = append(list, wanted{from: c.resolver(s.view), typeURL: s.typeURL, name: name, named: s.names(name)})
		}
	})
	if len(list) == 0 {
		return
	}
	c.make(list)
	c.locked(func() {
		if s := sub.selection; s != nil && s.refresh(c.resolver(s.view)) {
			s.flush()
		}
	})
	runtime.KeepAlive(list) // layers have weak references to their resources
}

// publish replaces the snapshot.
func (s *selection) publish(next *resource.Snapshot) {
	if next == s.snapshot {
		return
	}
	s.edition = edition{snapshot: next, since: s.since} // no client has it yet
}

// join adds a subscription.
func (s *selection) join(sub *subscription) {
	sub.selection = s
	s.subscribers = append(s.subscribers, sub)
	if sub.Has == s.snapshot {
		s.current++
	}
}
