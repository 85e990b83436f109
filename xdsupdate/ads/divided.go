// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// A client chooses how many names a request has, and work under the cache's mutex for each name
// delays all other streams. So this work is divided into parts, and the mutex is released in
// between. Work that needs no lock (sorting, merging, comparing, encoding) is done without it.
// Readers see no part before the last one: a selection is in the index before it is prepared, and
// has no subscriber when it leaves the index.

// partSize is the number of names that are handled in one part. Differences of at least largeSize
// names are computed without the lock.
const (
	partSize  limit.Size = 256
	largeSize limit.Size = 1024
)

// divided calls f for consecutive parts of n items, with the lock held for each part.
func (c *cache) divided(n int, f func(from, to int)) {
	for from := 0; from < n; from += c.partSize {
		if from > 0 {
			runtime.Gosched() // a goroutine that waits for the lock gets it now: Unlock does not hand it over
		}
		c.locked(func() { f(from, min(from+c.partSize, n)) })
	}
}

// pin returns the topics of names, sorted, and keeps them in the index until unpin is called. The
// wildcard name has no topic.
func (c *cache) pin(typeURL string, names []string) (topics []*topic, unpin func()) {
	pinned := make([]*topic, 0, len(names))
	c.divided(len(names), func(from, to int) {
		c.index.Change(typeURL, func(t *index.Type[*selection]) {
			for _, name := range names[from:to] {
				if name != wire.WildcardName {
					pinned = append(pinned, t.Pin(name))
				}
			}
		})
	})
	return index.Sorted(slices.Clone(pinned)), func() {
		c.divided(len(pinned), func(from, to int) {
			c.index.Change(typeURL, func(t *index.Type[*selection]) { t.Unpin(pinned[from:to]) })
		})
	}
}

// attach adds a new selection to the index, where changes find it, and prepares it. Its topics are
// pinned, or are topics of its predecessor, which is held until then. before is the predecessor, or
// nil.
func (c *cache) attach(s, before *selection) {
	c.divided(len(s.topics), func(from, to int) { index.Add(s, s.topics[from:to]) })
	prepare := false
	c.locked(func() {
		s.held--
		if before != nil {
			before.held--
			c.leaveIndex(before)
		}
		switch {
		case len(s.subscribers) == 0:
			c.leaveIndex(s)
		case c.layers != nil:
			prepare = true
		default:
			c.unprepared = append(c.unprepared, s)
		}
	})
	if prepare {
		c.prepare(s)
	}
}

// leaveIndex schedules the removal of a selection from the index when it has no subscriber and is
// not held. It is called with the mutex held.
func (c *cache) leaveIndex(s *selection) {
	if s.held == 0 && len(s.subscribers) == 0 {
		c.leaving = append(c.leaving, s)
	}
}

// detach removes the scheduled selections from the index.
func (c *cache) detach() {
	var leaving []*selection
	c.locked(func() { leaving, c.leaving = c.leaving, nil })
	for _, s := range leaving {
		c.divided(len(s.topics), func(from, to int) {
			c.index.Change(s.typeURL, func(t *index.Type[*selection]) { t.Remove(s, s.topics[from:to]) })
		})
	}
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

// catchUp brings the selection of a subscription up to date and queues responses. Most of the work is done without the
// lock, which it takes. first is called with the lock held, before the responses are planned. If the selection has a
// newer snapshot by then, the response is for the one before, and newer changes follow with the next response.
func (c *cache) catchUp(sub *subscription, first func()) {
	c.refresh(sub)
	var of *selection // of the snapshots that are compared
	var key difference.Key
	var state selectionState
	c.locked(func() {
		if s := sub.selection; s != nil && sub.isLarge() {
			of, key, state = s, sub.differenceKey(), sub.state()
		}
	})
	var ahead difference.Known
	if of != nil {
		ahead.Add(key, state.Difference(key.From, key.Traits))
	}
	c.locked(func() {
		first()
		if of != nil && of == sub.selection && slices.Equal(of.topics, state.Topics) {
			sub.ahead = &ahead
			if of.snapshot == state.Snapshot {
				of.differences.Add(key, ahead.Get(key))
			}
		}
		sub.conn.flush()
		sub.ahead = nil
		c.progressed()
	})
}
