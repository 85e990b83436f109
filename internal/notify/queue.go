// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrStopped is what Flush returns when Run has ended.
var ErrStopped = errors.New("event delivery has stopped")

// Options of a Queue. The zero value works.
type Options[T any] struct {
	// Name begins the message of the panic of a second Run, for example
	// "memory". The default is "notify".
	Name string
	// Slow is called when one call of a handler took longer than SlowAfter,
	// after that call. It gets the first value that the handler was called with
	// and their number. The default, nil, measures nothing.
	Slow func(took time.Duration, first T, n int)
	// SlowAfter is the threshold of Slow. The default is one second.
	SlowAfter time.Duration
}

// Queue delivers values of type T to its subscribers. The package comment states
// its promises. Create it with New.
type Queue[T any] struct {
	opts Options[T]
	// wake has room for one token, which tells Run that something was queued.
	wake chan struct{}
	// ended is closed when Run returns.
	ended chan struct{}

	mu sync.Mutex
	// queued is what the worker has not taken yet.
	queued []entry[T]
	// pushed and handled count entries since the beginning.
	pushed, handled uint64
	// subscribers counts subscriptions that were not cancelled; without any,
	// nothing is queued.
	subscribers int
	// busy is set while a goroutine delivers. work is that goroutine's; left is set
	// if the last one left some of it.
	busy, left bool
	// sleeping is set while Run waits for wake.
	sleeping bool
	// started is set by the first Run or Drain, running by Run.
	started, running bool
	stopped          bool
	synced           bool
	// syncAt is the value of handled from which on the queue is synced; it counts
	// once syncKnown is set.
	syncAt    uint64
	syncKnown bool
	waiters   []waiter

	work work[T]
}

// entry is a value or, if sub is set, a registration.
type entry[T any] struct {
	value T
	sub   *subscription[T]
}

// waiter is a Flush in progress.
type waiter struct {
	target uint64
	done   chan struct{}
}

// New returns an empty queue. It starts nothing: drive it with Run or Drain.
func New[T any](opts Options[T]) *Queue[T] {
	if opts.Name == "" {
		opts.Name = "notify"
	}
	if opts.SlowAfter <= 0 {
		opts.SlowAfter = time.Second
	}
	return &Queue[T]{opts: opts, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Push queues values in the given order, with nothing in between. It never
// blocks and calls nobody, so it may be called with locks held. Without
// subscribers it does nothing.
func (q *Queue[T]) Push(values ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.subscribers == 0 || q.stopped {
		return
	}
	for _, v := range values {
		q.queued = append(q.queued, entry[T]{value: v})
	}
	q.pushed += uint64(len(values))
	q.wakeLocked()
}

// Subscribe registers a handler at the current end of the queue. It calls
// nobody, so it may be called with locks held. After cancel has returned, no
// further call of the handler begins; cancel may be called many times, from
// anywhere.
func (q *Queue[T]) Subscribe(s Subscription[T]) (cancel func()) {
	if (s.Handle == nil) == (s.Batch == nil) {
		panic(q.opts.Name + ": a subscription needs exactly one handler")
	}
	sub := &subscription[T]{Subscription: s}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return func() {}
	}
	q.subscribers++
	q.queued = append(q.queued, entry[T]{sub: sub})
	q.pushed++
	q.wakeLocked()
	return func() { q.cancel(sub) }
}

// Subscribed reports whether there is a handler that was not cancelled.
func (q *Queue[T]) Subscribed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.subscribers > 0
}

// Run delivers until stop is closed. It finishes the call of a handler that is in
// progress, and the batch handlers of the values that were handled, and returns;
// what is still queued is dropped. A second call panics.
func (q *Queue[T]) Run(stop <-chan struct{}) {
	q.mu.Lock()
	if q.running {
		q.mu.Unlock()
		panic(q.opts.Name + ": Run called twice")
	}
	q.running = true
	q.mu.Unlock()
	for q.deliver(stop); !isClosed(stop); q.deliver(stop) {
		if !q.sleep() {
			continue
		}
		select {
		case <-stop:
		case <-q.wake:
		}
	}
	q.end() // not after a panic: a host that recovers may go on with Drain
}

// Drain delivers on the caller's goroutine until nothing is left, including what
// handlers push meanwhile. If another goroutine is delivering at this moment, or
// if a handler calls it, it returns at once: whoever delivers goes on until
// nothing is left. To wait for a running worker use Flush.
func (q *Queue[T]) Drain() { q.deliver(nil) }

// Flush waits until everything that was queued before the call has been handled,
// by whoever delivers. It returns the cause of ctx's end, or ErrStopped if Run
// has ended.
func (q *Queue[T]) Flush(ctx context.Context) error {
	q.mu.Lock()
	if q.handled >= q.pushed {
		q.mu.Unlock()
		return nil
	}
	if q.stopped {
		q.mu.Unlock()
		return ErrStopped
	}
	w := waiter{target: q.pushed, done: make(chan struct{})}
	q.waiters = append(q.waiters, w)
	q.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		q.forget(w)
		return context.Cause(ctx)
	case <-q.ended:
		select {
		case <-w.done:
			return nil
		default:
			return ErrStopped
		}
	}
}

// HasSynced reports whether the initial state has been handled: delivery has
// begun, source (nil: always) reports that it has published all of its initial
// state, and everything that was queued until then has been handled, the
// replays of all subscriptions made before delivery began among it. Once true it
// stays true. source is called with no lock held.
func (q *Queue[T]) HasSynced(source func() bool) bool {
	q.mu.Lock()
	synced, started := q.synced, q.started
	q.mu.Unlock()
	if synced || !started || (source != nil && !source()) {
		return synced
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.syncKnown {
		q.syncAt, q.syncKnown = q.pushed, true
	}
	q.synced = q.handled >= q.syncAt
	return q.synced
}

// wakeLocked wakes Run if it sleeps.
func (q *Queue[T]) wakeLocked() {
	if q.sleeping {
		q.sleeping = false
		q.wake <- struct{}{} // has room: only a sleeping Run is sent a token
	}
}

// sleep announces that Run is going to wait for wake; false means that there is
// something to do instead.
func (q *Queue[T]) sleep() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if (len(q.queued) > 0 || q.left) && !q.busy {
		return false
	}
	q.sleeping = true
	return true
}

func (q *Queue[T]) cancel(sub *subscription[T]) {
	if sub.cancelled.Swap(true) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subscribers--
}

// end is the end of Run: nothing is delivered or kept afterwards.
func (q *Queue[T]) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.sleeping = false
	q.queued = nil
	if !q.busy {
		q.work = work[T]{}
	}
	close(q.ended)
}

// forget removes a waiter that gave up.
func (q *Queue[T]) forget(w waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.waiters {
		if q.waiters[i].done == w.done {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
