// SPDX-License-Identifier: Apache-2.0

package serial

import "sync"

// Queue hands items to one function, one call at a time, in the order in which
// they were added. Whoever adds an item when the queue is idle works until it is
// empty, on its own goroutine; an item that is added while somebody works, by
// the function itself for example, is left to that worker. All that is waiting is
// handed over in one call.
type Queue[T any] struct {
	handle func(items []T)

	mu      sync.Mutex
	waiting []T
	busy    bool
}

// NewQueue returns an idle queue. The function owns the slice that it is given
// until it returns.
func NewQueue[T any](handle func(items []T)) *Queue[T] { return &Queue[T]{handle: handle} }

// Add appends items, and handles everything that is waiting unless somebody else
// is at it. When Add returns to a caller that was not called by the function and
// has no concurrent callers, its items have been handled.
func (q *Queue[T]) Add(items ...T) {
	if len(items) == 0 || !q.start(items) {
		return
	}
	// A function that panics must not leave the queue busy for ever.
	finished := false
	defer func() {
		if !finished {
			q.stop()
		}
	}()
	var done []T
	for {
		batch, ok := q.next(done)
		if !ok {
			break
		}
		q.handle(batch)
		clear(batch)
		done = batch[:0]
	}
	finished = true
}

// Idle reports whether nothing is waiting or being handled.
func (q *Queue[T]) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.busy && len(q.waiting) == 0
}

func (q *Queue[T]) start(items []T) (mine bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, items...)
	mine = !q.busy
	q.busy = true
	return mine
}

// next takes what is waiting, and leaves spare, an empty slice that is not used
// any more, in its place. When nothing is left the queue is idle.
func (q *Queue[T]) next(spare []T) ([]T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.busy = false
		// One small buffer is worth keeping, that of a large burst is not.
		if q.waiting = spare; cap(spare) > maxSpare {
			q.waiting = nil
		}
		return nil, false
	}
	batch := q.waiting
	q.waiting = spare
	return batch, true
}

// maxSpare is the largest buffer, in items, that an idle queue keeps.
const maxSpare = 64

func (q *Queue[T]) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
}
