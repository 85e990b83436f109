// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
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
	// Panicked is called with the panic of a handler, the first value that the handler was called
	// with, and the number of values. Nil, the default, drops it.
	Panicked func(p *guard.PanicError, first T, n int)
}

// Queue delivers values of type T to its subscribers. The package comment states
// its promises. Create it with New.
type Queue[T any] struct {
	opts Options[T]
	// wake has room for one token, which Run waits for: something was queued, or
	// another goroutine stopped delivering before all was done.
	wake chan struct{}

	mu sync.Mutex
	// queued has the entries that the worker has not taken yet.
	queued []entry[T]
	// pushed and handled count entries since the beginning; handled grows when a
	// batch is complete. They are equal if and only if there is nothing to do.
	pushed, handled uint64
	// subscribers is the number of active subscriptions. While it is zero, values are not queued.
	subscribers int
	// busy is set while a goroutine delivers; work is that goroutine's.
	busy bool
	// started is set by the first delivery, ran by Run, running while Run runs.
	// stopped is set when Run has returned, though not by a panic.
	started, ran, running, stopped bool
	// syncAt is the value of handled at which the queue has synced. It is fixed once, when the
	// source first reports that it is complete; then syncKnown is set.
	syncAt    uint64
	syncKnown bool
	// progress is closed and replaced by nil when handled grows and when a
	// goroutine stops delivering; nil if no Flush waits.
	progress chan struct{}

	work work[T]
}

// entry is a value or, if sub is set, a registration.
type entry[T any] struct {
	value T
	sub   *subscription[T]
}

// New returns an empty queue. It starts nothing: drive it with Run, Drain or
// Flush.
func New[T any](opts Options[T]) *Queue[T] {
	if opts.Name == "" {
		opts.Name = "notify"
	}
	if opts.SlowAfter <= 0 {
		opts.SlowAfter = time.Second
	}
	return &Queue[T]{opts: opts, wake: make(chan struct{}, 1)}
}

// Push queues values in the given order, with nothing in between, and for batch
// handlers in one batch. It never
// blocks and calls no handler, so it may be called with locks held. Without
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
	q.wakeRun()
}

// Subscribe registers a handler at the current end of the queue. It calls no
// handler, so it may be called with locks held. After cancel has returned, no
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
	q.wakeRun()
	return func() {
		if sub.cancelled.Swap(true) {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.subscribers--
	}
}

// Idle reports whether everything that was queued has been handled.
func (q *Queue[T]) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handled == q.pushed || q.stopped
}

// Run delivers until stop is closed. It finishes the handler call in progress and returns. Queued
// values are dropped, and so are the values collected for the batch handlers of an incomplete
// batch. A second call panics.
func (q *Queue[T]) Run(stop <-chan struct{}) {
	q.mu.Lock()
	if q.ran {
		q.mu.Unlock()
		panic(q.opts.Name + ": Run called twice")
	}
	q.ran, q.running = true, true
	q.mu.Unlock()
	ended := false
	defer func() { q.end(ended) }()
	for q.deliver(stop); !isClosed(stop); q.deliver(stop) {
		select {
		case <-stop:
		case <-q.wake:
		}
	}
	ended = true
}

// Drain delivers on the caller's goroutine until the queue is empty, including values that handlers
// push meanwhile. If another goroutine is delivering at this moment, or if a handler calls it, it
// returns at once: the goroutine that delivers empties the queue. To wait for a running worker use
// Flush.
func (q *Queue[T]) Drain() { q.deliver(nil) }

// Flush returns nil when everything that was queued before the call has been
// handled: by the goroutine that delivers or, if there is none and Run does not
// run, by Flush itself. It returns the cause of ctx's end if that comes first, or
// ErrStopped if Run has ended.
func (q *Queue[T]) Flush(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return ErrStopped
	}
	for target := q.pushed; q.handled < target; {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case q.stopped:
			return ErrStopped
		case !q.running && !q.busy:
			q.unlocked(func() { q.deliver(ctx.Done()) })
		default:
			if q.progress == nil {
				q.progress = make(chan struct{})
			}
			progress := q.progress
			q.unlocked(func() {
				select {
				case <-progress:
				case <-ctx.Done():
				}
			})
		}
	}
	return nil
}

// Started reports whether delivery has begun: Run, Drain or Flush was called.
func (q *Queue[T]) Started() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.started
}

// HasSynced reports whether the initial state has been handled: delivery has
// begun, source (nil: always) reports that it has published all of its initial
// state, and everything that was queued until then has been handled, the
// replays of all subscriptions made before delivery began among it. Once true it
// stays true. source is called with no lock held.
func (q *Queue[T]) HasSynced(source func() bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.started {
		return false
	}
	if !q.syncKnown {
		complete := true
		if source != nil {
			q.unlocked(func() { complete = source() })
		}
		if !complete {
			return false
		}
		if !q.syncKnown {
			q.syncAt, q.syncKnown = q.pushed, true
		}
	}
	return q.handled >= q.syncAt
}

// wakeRun makes Run look for work, at once or after its current work.
func (q *Queue[T]) wakeRun() {
	select {
	case q.wake <- struct{}{}:
	default: // Run has not taken the last token: it is going to look
	}
}

// wakeFlush makes every Flush look whether it can return, or has to deliver.
func (q *Queue[T]) wakeFlush() {
	if q.progress != nil {
		close(q.progress)
		q.progress = nil
	}
}

// unlocked calls f, which may panic, without the lock that the caller holds.
func (q *Queue[T]) unlocked(f func()) {
	q.mu.Unlock()
	defer q.mu.Lock()
	f()
}

// end ends Run. After a regular end values are neither delivered nor queued; after a panic, a host
// that recovers may continue with Drain.
func (q *Queue[T]) end(inOrder bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = false
	if inOrder {
		q.stopped = true
		q.queued = nil
		if !q.busy {
			q.work = work[T]{}
		}
	}
	q.wakeFlush()
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
