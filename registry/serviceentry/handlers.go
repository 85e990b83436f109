// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"
	"sync"

	"go.uber.org/atomic"
)

// handlers is a list of handlers in the order in which they were added.
type handlers[F any] struct {
	mu sync.Mutex
	// list is replaced, never modified.
	list []*handler[F]
}

type handler[F any] struct {
	handle    F
	cancelled atomic.Bool
}

func (l *handlers[F]) add(h *handler[F]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !h.cancelled.Load() {
		l.list = append(slices.Clip(l.list), h)
	}
}

// cancel takes a handler off the list, or keeps it from getting there.
func (l *handlers[F]) cancel(h *handler[F]) {
	h.cancelled.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(slices.Clone(l.list), func(i *handler[F]) bool { return i == h })
}

func (l *handlers[F]) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list) == 0
}

// all yields the handlers that are on the list now and not cancelled when it is
// their turn.
func (l *handlers[F]) all() func(yield func(int, F) bool) {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	return func(yield func(int, F) bool) {
		for i, h := range list {
			if !h.cancelled.Load() && !yield(i, h.handle) {
				return
			}
		}
	}
}
