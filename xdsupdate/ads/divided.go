// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"slices"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// The names of a request are as many as its client likes, and what is done for each
// of them under the cache's mutex keeps everybody else waiting. So it is done in
// parts, between which others have their turn; what needs no lock (sorting, merging,
// comparing, encoding) is done without. No part is seen before the last one: a
// selection is in the index before it is prepared, and has no subscriber any more
// when it leaves it.

// partSize is how many names are worked on before others may have the lock, largeSize
// from how many on a difference is found without it.
const (
	partSize  limit.Size = 256
	largeSize limit.Size = 1024
)

// divided calls f for consecutive parts of n things, with the lock held for each.
func (c *cache) divided(n int, f func(from, to int)) {
	for from := 0; from < n; from += c.partSize {
		if from > 0 {
			runtime.Gosched() // who waits for the lock is to have it: it is not handed over by itself
		}
		c.locked(func() { f(from, min(from+c.partSize, n)) })
	}
}

// pin returns the topics of names, sorted, and has them stay until unpin is called.
// The name of the wildcard has none.
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

// known returns the topics of names, sorted, of which only those matter that a client
// is subscribed to.
func (c *cache) known(typeURL string, names []string) []*topic {
	var out []*topic
	c.divided(len(names), func(from, to int) {
		t := c.index.Of(typeURL)
		for _, name := range names[from:to] {
			if p := t.Find(name); p != nil {
				out = append(out, p)
			}
		}
	})
	return index.Sorted(out)
}

// attach lists a new selection in the index, from where changes find it, and
// prepares it. Its topics are pinned, or those of the selection before it: that is
// held until then; it may be nil.
func (c *cache) attach(s, before *selection) {
	c.divided(len(s.topics), func(from, to int) { index.Add(s, s.topics[from:to]) })
	prepare := false
	c.locked(func() {
		s.attached = true
		if before != nil {
			before.held--
			c.leaveIndex(before)
		}
		switch {
		case len(s.subscribers) == 0:
			c.leaveIndex(s)
		case c.ready && s.view.ready:
			prepare = true
		default:
			s.view.waiting = append(s.view.waiting, s)
		}
	})
	if prepare {
		c.prepare([]*selection{s})
	}
}

// leaveIndex has a selection leave the index when nobody needs it there any more. It
// is called with the mutex held.
func (c *cache) leaveIndex(s *selection) {
	if s.attached && s.held == 0 && len(s.subscribers) == 0 {
		s.attached = false
		c.leaving = append(c.leaving, s)
	}
}

// detach takes selections out of the index that nobody needs there any more.
func (c *cache) detach() {
	var leaving []*selection
	c.locked(func() { leaving, c.leaving = c.leaving, nil })
	for _, s := range leaving {
		c.divided(len(s.topics), func(from, to int) {
			c.index.Change(s.typeURL, func(t *index.Type[*selection]) { t.Remove(s, s.topics[from:to]) })
		})
	}
}
