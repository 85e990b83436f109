// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// work is the batch in progress. It is a state machine rather than a set of
// loops: each step moves on before it calls a handler, so that a handler that does
// not return leaves the next step to the next goroutine that delivers.
type work[T any] struct {
	batch []entry[T]
	// next is the entry in progress, sub the next subscription to be called with
	// it.
	next, sub int
	// subs are the active subscriptions in order of registration. The values that batch handlers
	// have yet to get are in their batch.
	subs []*subscription[T]
	// last is when the last call of a handler ended, if calls are measured.
	last time.Time
}

// deliver handles all queued entries, until the queue is empty or stop is closed, unless another
// goroutine is doing so.
func (q *Queue[T]) deliver(stop <-chan struct{}) {
	q.mu.Lock()
	if q.busy || q.stopped {
		q.mu.Unlock()
		return
	}
	q.busy, q.started = true, true
	q.mu.Unlock()
	left := true // by a handler that does not return, or because of stop
	defer func() {
		if left {
			q.release()
		}
	}()
	for more := len(q.work.batch) > 0 || q.load(); more; more = q.load() {
		if q.values(stop) {
			return // batch handlers get a batch whole or not at all
		}
		q.batches()
	}
	left = false
}

// load ends the completed batch and takes the queued entries as the next one. If the queue is
// empty, it ends the delivery of this goroutine and returns false.
func (q *Queue[T]) load() bool {
	w := &q.work
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(w.batch); n > 0 {
		q.handled += uint64(n)
		q.wakeFlush()
		w.next = 0
		clear(w.batch)
		if w.batch = w.batch[:0]; cap(w.batch) > maxKept.Get() {
			w.batch = nil
		}
	}
	if len(q.queued) == 0 {
		q.busy = false
		return false
	}
	q.queued, w.batch = w.batch, q.queued
	w.subs = slices.DeleteFunc(w.subs, func(s *subscription[T]) bool { return s.cancelled.Load() })
	if q.opts.Slow != nil {
		w.last = time.Now()
	}
	return true
}

// maxKept is the largest buffer, in entries, that is kept for the next batch;
// maxKeptBatch is that of each batch handler.
const (
	maxKept      limit.Size = 4096
	maxKeptBatch limit.Size = 256
)

// values hands the entries of the batch to the handlers of single values and
// collects them for the batch handlers. It returns true if stop cut it short.
func (q *Queue[T]) values(stop <-chan struct{}) (cut bool) {
	w := &q.work
	for w.next < len(w.batch) {
		e := &w.batch[w.next]
		if e.sub != nil {
			if q.replay(e.sub, stop) {
				return true
			}
			w.subs = append(w.subs, e.sub)
			w.next++
			continue
		}
		if w.sub == 0 && isClosed(stop) {
			return true
		}
		for w.sub < len(w.subs) {
			s := w.subs[w.sub]
			w.sub++
			if s.Wants == nil || s.Wants(e.value) {
				q.offer(s, e.value)
			}
		}
		w.sub = 0
		w.next++
	}
	return false
}

// replay hands the rest of a subscription's replay to it. It returns true if
// stop cut it short.
func (q *Queue[T]) replay(s *subscription[T], stop <-chan struct{}) (cut bool) {
	if s.Replay == nil {
		return false
	}
	i := 0
	for v := range s.Replay {
		if i++; i <= s.replayed {
			continue
		}
		if s.cancelled.Load() {
			break
		}
		if isClosed(stop) {
			return true
		}
		s.replayed++
		q.offer(s, v)
	}
	s.Replay = nil
	return false
}

// offer hands a value to a subscription, or keeps it for its batch handler.
func (q *Queue[T]) offer(s *subscription[T], v T) {
	switch {
	case s.cancelled.Load():
	case s.Batch != nil:
		s.batch = append(s.batch, v)
	default:
		q.handle(s, v)
		q.measure(v, 1)
	}
}

// handle calls the handler of a subscription.
func (q *Queue[T]) handle(s *subscription[T], v T) {
	defer func() { q.panicked(guard.Recovered(recover()), v, 1) }()
	s.Handle(v)
}

// handleBatch calls the batch handler of a subscription.
func (q *Queue[T]) handleBatch(s *subscription[T], batch []T) {
	first, n := batch[0], len(batch) // the slice is the handler's
	defer func() { q.panicked(guard.Recovered(recover()), first, n) }()
	s.Batch(batch)
}

func (q *Queue[T]) panicked(p *guard.PanicError, first T, n int) {
	if p != nil && q.opts.Panicked != nil {
		q.opts.Panicked(p, first, n)
	}
}

// batches hands over what values collected.
func (q *Queue[T]) batches() {
	for _, s := range q.work.subs {
		batch := s.batch
		s.batch = nil // if the handler does not return it is not called again
		if len(batch) == 0 || s.cancelled.Load() {
			continue
		}
		first := batch[0]
		q.handleBatch(s, batch)
		q.measure(first, len(batch))
		if clear(batch); cap(batch) <= maxKeptBatch.Get() {
			s.batch = batch[:0]
		}
	}
}

// release ends the delivery of this goroutine with work left.
func (q *Queue[T]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.wakeRun()
	q.wakeFlush()
}

// measure reports the last call if it was slow.
func (q *Queue[T]) measure(first T, n int) {
	if q.opts.Slow == nil {
		return
	}
	now := time.Now()
	took := now.Sub(q.work.last)
	q.work.last = now
	if took > q.opts.SlowAfter {
		q.opts.Slow(took, first, n)
		q.work.last = time.Now()
	}
}
