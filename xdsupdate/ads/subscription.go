// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
)

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
