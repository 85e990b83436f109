// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
)

// ahead is a difference that is computed before the response is planned, without the lock. The
// selection may have a newer snapshot when the response is sent; newer changes follow with the next
// response, as for any client that is behind.
type ahead struct {
	key   difference.Key
	of    *selection
	state selectionState
	found *difference.Difference
}

// isQuick reports whether the response needs no slow computation. It is called with the mutex held.
func (s *subscription) isQuick() bool {
	return s.selection == nil || len(s.selection.dirty) == 0 && !s.isLarge()
}

// isLarge reports whether computing the difference may take long, and no other stream has computed
// it. It is called with the mutex held.
func (s *subscription) isLarge() bool {
	now := s.selection.snapshot
	if s.rejections.isolates() || now == nil || s.Has == now && !s.Returning {
		return false
	}
	size := now.List.Len() + s.Has.List.Len()
	if s.Returning {
		size += len(s.selection.topics) // each name needs an answer
	}
	return size >= s.conn.cache.largeSize && s.selection.differences.Get(s.differenceKey()) == nil
}

// lookAhead returns the difference for the client of a subscription, or nil if the difference is
// computed quickly or known. It takes the lock, and compares snapshots without it.
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

// catchUp brings the selection of a subscription up to date and queues responses. Most of the work is done without the
// lock, which it takes. first is called with the lock held, before the responses are planned.
func (c *cache) catchUp(sub *subscription, first func()) {
	c.refresh(sub)
	a := c.lookAhead(sub)
	c.locked(func() {
		first()
		c.flushAhead(sub, a)
		c.progressed()
	})
}

// flushAhead flushes the connection of a subscription. a is the difference that was computed ahead,
// or nil. It is called with the mutex held.
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

// sameNames reports whether the selection still has the given names.
func (s *selection) sameNames(topics []*topic) bool {
	return len(s.topics) == len(topics) && (len(topics) == 0 || &s.topics[0] == &topics[0])
}
