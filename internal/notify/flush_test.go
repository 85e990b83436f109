// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
)

// flush flushes a queue with a context that ends the test if Flush polls instead of waiting.
func flush(ctx context.Context, q *queue) error {
	return q.Flush(&counted{Context: ctx}) //nolint:contextcheck // it is ctx, and counts
}

// counted counts how often it is asked for its end.
type counted struct {
	context.Context //nolint:containedctx // it is one itself
	asked           atomic.Int32
}

func (c *counted) Done() <-chan struct{} {
	if c.asked.Inc() > 1000 {
		panic("Flush does not wait: it has looked 1000 times")
	}
	return c.Context.Done()
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		if err := flush(t.Context(), q); err != nil {
			t.Errorf("Flush of nothing = %v", err)
		}
		var l log[int]
		q.Subscribe(subscription{Handle: func(v int) {
			time.Sleep(time.Second) // in the bubble: costs nothing
			l.add(v)
		}})
		q.Subscribe(subscription{Batch: func(vs []int) { l.add(-len(vs)) }})
		q.Push(1, 2)
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := flush(ctx, q); !errors.Is(err, cause) {
			t.Errorf("Flush with an ended context = %v, want its cause", err)
		}
		end := run(q)
		if err := flush(t.Context(), q); err != nil {
			t.Errorf("Flush = %v", err)
		}
		l.want(t, 1, 2, -2)
		q.Push(3, 4)
		synctest.Wait() // 3 is being handled
		var flushed error
		var wg sync.WaitGroup
		wg.Go(func() { flushed = flush(t.Context(), q) })
		synctest.Wait()
		end()
		wg.Wait()
		if !errors.Is(flushed, notify.ErrStopped) {
			t.Errorf("Flush when Run ends = %v, want ErrStopped", flushed)
		}
		l.want(t, 1, 2, -2, 3)
	})
}

// Flush waits for values pushed before it, and not for values pushed meanwhile.
func TestFlushDoesNotWaitForLaterValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		q.Subscribe(subscription{Handle: func(v int) {
			time.Sleep(time.Second)
			l.add(v)
			if v < 9 {
				q.Push(v + 1)
			}
		}})
		end := run(q)
		synctest.Wait()
		q.Push(1)
		if err := flush(t.Context(), q); err != nil {
			t.Error(err)
		}
		l.want(t, 1)
		end()
	})
}

// Where nothing runs, Flush does the work itself.
func TestFlushWithoutRun(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	q.Subscribe(subscription{Handle: func(v int) {
		l.add(v)
		if v == 1 {
			q.Push(2)
		}
	}})
	q.Push(1)
	if err := flush(t.Context(), q); err != nil {
		t.Errorf("Flush = %v", err)
	}
	l.want(t, 1, 2)
}

// The work of Flush ends with its context, between two values; the rest is left for the next Flush.
func TestFlushWithoutRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		ctx, cancel := context.WithCancel(t.Context())
		q.Subscribe(subscription{Handle: func(v int) {
			l.add(v)
			cancel()
		}})
		q.Push(1, 2)
		if err := flush(ctx, q); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush = %v, want the context's error", err)
		}
		l.want(t, 1)
		if err := flush(t.Context(), q); err != nil {
			t.Errorf("Flush = %v", err)
		}
		l.want(t, 1, 2)
	})
}

// A Flush concurrent with a Drain waits for it, and takes over if it panics.
func TestFlushBesideDrain(t *testing.T) {
	for name, panicking := range map[string]bool{"that ends": false, "that panics": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := notify.New(options{})
				var l log[int]
				proceed := make(chan struct{})
				q.Subscribe(subscription{Handle: func(v int) {
					l.add(v)
					if <-proceed; panicking && v == 1 {
						panic(guard.Defect("once"))
					}
				}})
				q.Push(1, 2)
				var wg sync.WaitGroup
				wg.Go(func() {
					if got := panics(q.Drain); got != panicking {
						t.Errorf("Drain panicked: %t, want %t", got, panicking)
					}
				})
				synctest.Wait()
				var flushed error
				wg.Go(func() { flushed = flush(t.Context(), q) })
				synctest.Wait()
				l.want(t, 1)
				close(proceed)
				wg.Wait()
				if flushed != nil {
					t.Errorf("Flush = %v", flushed)
				}
				l.want(t, 1, 2)
			})
		})
	}
}

// After Run has ended Flush fails, even if the queue was empty.
func TestFlushAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		run(q)()
		if err := flush(t.Context(), q); !errors.Is(err, notify.ErrStopped) {
			t.Errorf("Flush = %v, want ErrStopped", err)
		}
	})
}

// A Flush that waits for Run ends with its context, and with Run, also if neither makes
// progress.
func TestFlushEndsWhileItWaits(t *testing.T) {
	for name, withRun := range map[string]bool{"with its context": false, "with Run": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := notify.New(options{})
				proceed := make(chan struct{})
				q.Subscribe(subscription{Handle: func(int) { <-proceed }})
				q.Push(1)
				var wg sync.WaitGroup
				wg.Go(q.Drain)
				synctest.Wait() // the handler is called by Drain: Run can end
				end := run(q)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				flushed := make(chan error, 1)
				wg.Go(func() { flushed <- flush(ctx, q) })
				synctest.Wait()
				wanted := context.Canceled
				if withRun {
					wanted = notify.ErrStopped
					end()
				} else {
					cancel()
				}
				synctest.Wait()
				select {
				case err := <-flushed:
					if !errors.Is(err, wanted) {
						t.Errorf("Flush = %v, want %v", err, wanted)
					}
				default:
					t.Errorf("Flush still waits, want %v", wanted)
				}
				close(proceed)
				if !withRun {
					end()
				}
				wg.Wait()
			})
		})
	}
}
