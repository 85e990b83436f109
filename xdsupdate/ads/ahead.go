// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
)

// ahead is a difference that is found ahead of an answer, without the lock. When it
// is sent the selection may have gone on: what is new since follows with the next
// answer, as for any client that is behind.
type ahead struct {
	key   difference.Key
	of    *selection
	state selectionState
	found *difference.Difference
}

// isQuick reports whether an answer needs nothing that takes long. It is called with the
// mutex held.
func (s *subscription) isQuick() bool {
	return s.selection == nil || len(s.selection.dirty) == 0 && !s.isLarge()
}

// isLarge reports whether finding the difference may take long, and nobody has done it.
// It is called with the mutex held.
func (s *subscription) isLarge() bool {
	now := s.selection.snapshot
	if s.quarantines != nil {
		return false
	}
	if now == nil || s.Has == now && !s.Returning {
		return false
	}
	size := now.List.Len() + s.Has.List.Len()
	if s.Returning {
		size += len(s.selection.topics) // each has to be answered
	}
	return size >= s.conn.cache.largeSize && s.selection.differences.Get(s.differenceKey()) == nil
}

// lookAhead returns what a subscription's client is to be sent, or nil if that is found
// out soon. It takes the lock, and compares without it.
func (c *cache) lookAhead(sub *subscription) *ahead {
	var a *ahead
	c.locked(func() {
		if s := sub.selection; s != nil && sub.isLarge() {
			a = &ahead{key: sub.differenceKey(), of: s, state: s.state()}
		}
	})
	if a != nil {
		a.found = a.state.Difference(a.key.From, a.key.Traits)
	}
	return a
}

// flushAhead flushes the connection of a subscription, whose difference may be known
// ahead; nil: it is not. It is called with the mutex held.
func (c *cache) flushAhead(sub *subscription, a *ahead) {
	if s := sub.selection; a != nil && s == a.of && s != nil && s.sameNames(a.state.Topics) {
		switch {
		case s.snapshot != a.state.Snapshot:
			sub.ahead = a
		case s.differences.Get(a.key) == nil:
			s.differences.Add(a.key, a.found)
		}
	}
	sub.conn.flush()
	sub.ahead = nil
}

// sameNames reports whether the names are still those of a moment.
func (s *selection) sameNames(topics []*topic) bool {
	return len(s.topics) == len(topics) && (len(topics) == 0 || &s.topics[0] == &topics[0])
}
