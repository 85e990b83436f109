// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
)

// subscription is one type of one stream: its state, its selection, and the rejected resources. The
// cache's mutex guards all of it.
//
// Responses are not stored: each is the difference between the client's snapshot and that of the
// selection. So a slow client costs nothing, however often resources change meanwhile. After a
// response, the next one of the type waits for a request, so that a client has at most one more
// response than requests; exceptions are new clusters (see package sequence) and responses in
// parts.
type subscription struct {
	sequence.Type
	conn      *connection
	selection *selection // nil before the first request was handled, and at the end
	// legacy means that the first request had no names, which makes the subscription a wildcard until there are
	// some.
	legacy bool
	// ahead is a difference that was found without the lock, for the next answer, or nil.
	ahead *ahead

	rejections *rejections // nil if there are none
}

// Scope implements sequence.Target.
func (s *subscription) Scope() sequence.Scope {
	switch {
	case s.selection == nil:
		return sequence.Nothing
	case s.selection.wildcard:
		return sequence.Everything
	default:
		return sequence.Names
	}
}

func (s *subscription) topics() []*topic {
	if s.selection == nil {
		return nil
	}
	return s.selection.topics
}

// Difference implements sequence.Target.
func (s *subscription) Difference() *difference.Difference {
	target := s.Snapshot()
	if target == nil || s.Has == target && !s.Returning {
		return nil
	}
	key, known := s.differenceKey(), &s.selection.differences
	switch {
	case s.rejections.isolates():
		known = &s.rejections.own.differences
	case s.ahead != nil && s.ahead.key == key:
		return s.ahead.found
	}
	found := known.Get(key)
	if found == nil {
		found = s.state().Difference(key.From, key.Traits)
	}
	known.Add(key, found)
	return found
}

func (s *subscription) differenceKey() difference.Key {
	return difference.Key{From: s.Has, Traits: s.conn.Traits(&s.Type)}
}

// state returns the state of the selection, with the snapshot that the client is to have.
func (s *subscription) state() selectionState {
	m := s.selection.state()
	m.Snapshot = s.Snapshot()
	return m
}

// Named implements sequence.Target.
func (s *subscription) Named(name string) (subscribed, unsettled bool) {
	return s.selection.names(name), s.selection.snapshot == nil || slices.Contains(s.selection.dirty, name)
}

// Announcement implements sequence.Target.
func (s *subscription) Announcement(base, of *resource.State) *sequence.Announcement {
	return s.selection.announcement(base, of)
}

// Moved implements sequence.Target.
func (s *subscription) Moved(before *resource.Snapshot) {
	if s.selection != nil {
		s.selection.moved(s, before)
	}
}
