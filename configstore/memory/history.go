// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// history keeps the last changes. Their revisions are consecutive.
type history struct {
	limit int

	mu sync.Mutex
	// ring holds the change of revision r at (r-1) % limit. It grows up to limit.
	ring []configstore.Change
	last uint64
	// more is closed with the next change; nil if no watch waits.
	more chan struct{}
}

// add appends changes and wakes the waiting watches.
func (h *history) add(changes []configstore.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		if len(h.ring) < h.limit {
			h.ring = append(h.ring, c)
		} else {
			h.ring[(c.Revision-1)%uint64(h.limit)] = c
		}
		h.last = c.Revision
	}
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// after appends to buf, up to its capacity, the changes after a committed
// revision. If there are none yet, it returns a channel that is closed when the
// history grows, which it is about to if it does not have the revision itself. ok
// is false if the history no longer goes back that far.
func (h *history) after(revision uint64, buf []configstore.Change) (changes []configstore.Change, more <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision >= h.last {
		if h.more == nil {
			h.more = make(chan struct{})
		}
		return nil, h.more, true
	}
	if h.last-revision > uint64(len(h.ring)) {
		return nil, nil, false
	}
	for r := revision + 1; r <= h.last && len(buf) < cap(buf); r++ {
		buf = append(buf, h.ring[(r-1)%uint64(h.limit)])
	}
	return buf, nil, true
}
