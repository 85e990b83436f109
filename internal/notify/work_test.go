// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/notify"
)

func TestRunDeliversWhatWasQueuedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		q.Subscribe(subscription{Handle: l.add})
		q.Push(1, 2)
		defer run(q)()
		synctest.Wait()
		l.want(t, 1, 2)
		q.Push(3)
		synctest.Wait()
		l.want(t, 1, 2, 3)
	})
}

func TestRunTwicePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{Name: "thing"})
		run(q)()
		defer func() {
			if got, want := recover(), "thing: Run called twice"; got != want {
				t.Errorf("a second Run panics with %v, want %q", got, want)
			}
		}()
		q.Run(nil)
	})
}

// Run finishes the call in progress and drops the rest: a batch handler gets no part
// of a batch.
func TestRunStops(t *testing.T) {
	q := notify.New(options{})
	stop := make(chan struct{})
	var l log[int]
	q.Subscribe(subscription{Handle: func(v int) {
		l.add(v)
		if v == 2 {
			close(stop)
		}
	}})
	q.Subscribe(subscription{Handle: func(v int) { l.add(10 * v) }})
	q.Subscribe(subscription{Batch: func(vs []int) { l.add(100 + len(vs)) }})
	q.Push(1, 2, 3)
	q.Run(stop)
	l.want(t, 1, 10, 2, 20)
	q.Push(4)
	q.Subscribe(subscription{Handle: l.add, Replay: slices.Values([]int{5})})()
	q.Drain()
	l.want(t, 1, 10, 2, 20)
	if err := q.Flush(t.Context()); !errors.Is(err, notify.ErrStopped) {
		t.Errorf("Flush after the end with values left = %v, want ErrStopped", err)
	}
}

func TestRunStopsAmidReplay(t *testing.T) {
	q := notify.New(options{})
	stop := make(chan struct{})
	var l log[int]
	q.Subscribe(subscription{Replay: slices.Values([]int{1, 2, 3}), Handle: func(v int) {
		l.add(v)
		if v == 1 {
			close(stop)
		}
	}})
	q.Run(stop)
	l.want(t, 1)
}

// A panic of a handler costs that call: it is told once, and everything else is
// handled as without it, by the same Drain.
func TestPanicOfAHandler(t *testing.T) {
	var told log[string]
	q := notify.New(options{Panicked: func(p *guard.PanicError, first, n int) {
		told.add(fmt.Sprintf("%v of %d, %d values", p.Value, first, n))
	}})
	var l, batch log[int]
	q.Subscribe(subscription{Batch: func(vs []int) { batch.add(len(vs)); vs[0] = 9; panic("batch") }})
	q.Subscribe(subscription{Handle: func(v int) { l.add(v); panic("one") }, Replay: slices.Values([]int{1})})
	q.Subscribe(subscription{Handle: func(v int) { l.add(10 * v) }})
	q.Push(2, 3)
	q.Drain()
	l.want(t, 1, 2, 20, 3, 30)
	batch.want(t, 2)
	told.want(t, "one of 1, 1 values", "one of 2, 1 values", "one of 3, 1 values", "batch of 2, 2 values")
	if !q.Idle() {
		t.Error("the queue is not idle")
	}
}

// A panic of a handler ends neither Run nor Flush, with nobody to tell either.
func TestRunGoesOnAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		q.Subscribe(subscription{Handle: func(v int) { l.add(v); panic("always") }})
		q.Push(1)
		if err := q.Flush(t.Context()); err != nil {
			t.Errorf("Flush = %v", err)
		}
		defer run(q)()
		q.Push(2)
		synctest.Wait()
		q.Push(3)
		synctest.Wait()
		l.want(t, 1, 2, 3)
	})
}

// A panic that passes leaves the queue as if the call had returned: the next Drain
// goes on with the next handler of the same value.
func TestDefect(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	var batch log[int]
	explode := true
	fuse := func(v int) {
		if explode {
			panic(guard.Defect(fmt.Sprint(v)))
		}
	}
	q.Subscribe(subscription{Batch: func(vs []int) { batch.add(len(vs)); fuse(len(vs)) }})
	q.Subscribe(subscription{Handle: func(v int) { l.add(v); fuse(v) }, Replay: slices.Values([]int{1, 2})})
	q.Subscribe(subscription{Handle: func(v int) { l.add(10 * v) }})
	q.Push(3)
	for _, after := range [][]int{{1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 30}} {
		if !panics(q.Drain) {
			t.Fatal("the defect was swallowed")
		}
		l.want(t, after...)
	}
	batch.want(t, 1)
	q.Push(4)
	explode = false
	q.Drain()
	l.want(t, 1, 2, 3, 30, 4, 40)
	batch.want(t, 1, 1)
	if err := q.Flush(t.Context()); err != nil {
		t.Errorf("Flush = %v", err)
	}
}

// If the host recovers from a defect that ended Run, it can go on with Drain.
func TestDefectInRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		q.Subscribe(subscription{Handle: func(v int) {
			l.add(v)
			if v == 1 {
				panic(guard.Defect("once"))
			}
		}})
		q.Push(1, 2)
		if !panics(func() { q.Run(nil) }) {
			t.Fatal("Run swallowed the defect")
		}
		q.Push(3)
		q.Drain()
		l.want(t, 1, 2, 3)
		q.Push(4)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // Flush does not wait for a Run that has ended: it delivers queued values
		if err := flush(ctx, q); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush = %v, want the context's error", err)
		}
		if err := flush(t.Context(), q); err != nil {
			t.Errorf("Flush = %v", err)
		}
		l.want(t, 1, 2, 3, 4)
	})
}

// After the end of Run, values left by a panicking Drain are not delivered.
func TestDefectInDrainAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		proceed := make(chan struct{})
		q.Subscribe(subscription{Handle: func(v int) {
			l.add(v)
			<-proceed
			panic(guard.Defect(fmt.Sprint(v)))
		}})
		q.Push(1, 2)
		drained := make(chan bool)
		go func() { drained <- panics(q.Drain) }()
		synctest.Wait()
		run(q)()
		close(proceed)
		if !<-drained {
			t.Error("Drain swallowed the defect")
		}
		q.Drain()
		l.want(t, 1)
	})
}

// A sleeping Run takes up a subscription and hands it its replay.
func TestSubscribeBesideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		defer run(q)()
		synctest.Wait()
		var l log[int]
		q.Subscribe(subscription{Handle: l.add, Replay: slices.Values([]int{1, 2})})
		synctest.Wait()
		l.want(t, 1, 2)
	})
}

// A sleeping Run takes over the values left by a panicking Drain.
func TestDefectInDrainBesideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		proceed := make(chan struct{})
		q.Subscribe(subscription{Handle: func(v int) {
			l.add(v)
			if v == 1 {
				<-proceed
				panic(guard.Defect("once"))
			}
		}})
		q.Push(1, 2)
		drained := make(chan bool)
		go func() { drained <- panics(q.Drain) }()
		synctest.Wait()
		defer run(q)()
		synctest.Wait() // Run sleeps: another goroutine delivers
		close(proceed)
		if !<-drained {
			t.Error("Drain swallowed the defect")
		}
		synctest.Wait()
		l.want(t, 1, 2)
	})
}

func TestDrainInHandlerReturns(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	q.Subscribe(subscription{Handle: func(v int) {
		l.add(v)
		q.Push(v - 1)
		q.Drain()
		l.add(-v)
	}, Wants: func(v int) bool { return v > 0 }})
	q.Push(2)
	q.Drain()
	l.want(t, 2, -2, 1, -1)
}

// Drain concurrent with Run: the handlers still run one at a time and see one order.
func TestDrainBesideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		active := 0
		q.Subscribe(subscription{Handle: func(v int) {
			active++
			if active != 1 {
				t.Error("two handlers at a time")
			}
			l.add(v)
			active--
		}})
		end := run(q)
		var want []int
		for i := range 5000 {
			want = append(want, i)
			q.Push(i)
			if i%3 == 0 {
				q.Drain()
			}
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Errorf("Flush = %v", err)
		}
		end()
		l.want(t, want...)
	})
}

// A value that is pushed at the moment when the worker goes to sleep wakes it. In
// the bubble a lost wake-up ends the context at once.
func TestNoWakeUpIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		n := 0
		q.Subscribe(subscription{Handle: func(int) { n++ }})
		defer run(q)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		const rounds = 20000
		for range rounds {
			q.Push(1)
			if err := q.Flush(ctx); err != nil {
				t.Fatalf("after %d rounds: %v", n, err)
			}
		}
		if n != rounds {
			t.Errorf("%d values were handled, want %d", n, rounds)
		}
	})
}
