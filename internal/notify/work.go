// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"time"
)

// work is the batch in progress. It is a state machine rather than a set of
// loops: each step moves on before it calls a handler, so that a panic of the
// handler leaves the next step to whoever delivers next.
type work[T any] struct {
	batch []entry[T]
	// next is the entry in progress, sub the next subscription to be called with
	// it.
	next, sub int
	// flush is the next subscription whose collected batch is to be handed over.
	flush int
	// counted entries of the batch are in Queue.handled.
	counted int
	// subs are the active subscriptions in order of registration.
	subs []*subscription[T]
	// last is when the last call of a handler ended, if calls are measured.
	last time.Time
}

// deliver handles everything that is queued, until nothing is left or stop is
// closed, unless another goroutine does so already.
func (q *Queue[T]) deliver(stop <-chan struct{}) {
	q.mu.Lock()
	if q.busy || q.stopped {
		q.mu.Unlock()
		return
	}
	q.busy, q.left, q.started = true, false, true
	q.mu.Unlock()
	finished := false
	defer func() {
		if !finished { // a handler panicked
			q.release()
		}
	}()
	for q.load() {
		cut := q.values(stop)
		q.batches()
		q.account()
		if cut {
			q.release()
			break
		}
	}
	finished = true
}

// load makes a batch of what is queued unless one is in progress. If there is
// nothing to do it gives up the role of the worker and returns false.
func (q *Queue[T]) load() bool {
	w := &q.work
	if len(w.batch) > 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
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
			q.offer(s, e.value)
		}
		w.sub = 0
		w.next++
	}
	return false
}

func (q *Queue[T]) offer(s *subscription[T], v T) {
	switch {
	case s.cancelled.Load() || !s.wants(v):
	case s.Batch != nil:
		s.batch = append(s.batch, v)
	default:
		s.Handle(v)
		q.measure(v, 1)
	}
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
		if s.Batch != nil {
			s.batch = append(s.batch, v)
			continue
		}
		s.Handle(v)
		q.measure(v, 1)
	}
	s.Replay = nil
	return false
}

// batches hands over what values collected.
func (q *Queue[T]) batches() {
	w := &q.work
	for w.flush < len(w.subs) {
		s := w.subs[w.flush]
		w.flush++
		batch := s.batch
		s.batch = nil
		if len(batch) == 0 || s.cancelled.Load() {
			continue
		}
		first := batch[0]
		s.Batch(batch)
		q.measure(first, len(batch))
	}
	w.flush = 0
}

// account counts what has been handled, tells those who wait for it, and drops
// the batch if nothing of it is left.
func (q *Queue[T]) account() {
	w := &q.work
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handled += uint64(w.next - w.counted)
	w.counted = w.next
	q.waiters = slices.DeleteFunc(q.waiters, func(f waiter) bool {
		if f.target > q.handled {
			return false
		}
		close(f.done)
		return true
	})
	if w.next < len(w.batch) {
		return
	}
	w.next, w.counted = 0, 0
	if cap(w.batch) > maxKept {
		w.batch = nil
		return
	}
	clear(w.batch)
	w.batch = w.batch[:0]
}

// maxKept is the largest buffer, in entries, that is kept for the next batch.
const maxKept = 4096

// release gives up the role of the worker with work left.
func (q *Queue[T]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy, q.left = false, true
	q.wakeLocked()
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
