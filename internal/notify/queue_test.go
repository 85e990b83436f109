// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/internal/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	queue        = notify.Queue[int]
	options      = notify.Options[int]
	subscription = notify.Subscription[int]
)

// log collects what handlers are called with.
type log[T comparable] struct {
	mu  sync.Mutex
	got []T
}

func (l *log[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, v)
}

func (l *log[T]) want(t *testing.T, want ...T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.got, want) {
		t.Errorf("handled %v, want %v", l.got, want)
	}
}

func run(q *queue) (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { q.Run(stop) })
	return func() {
		close(stop)
		wg.Wait()
	}
}

func TestReplayAtItsPosition(t *testing.T) {
	q := notify.New(options{})
	var a, b, c log[int]
	q.Subscribe(subscription{Handle: a.add})
	q.Push(1)
	q.Push(2, 3)
	q.Subscribe(subscription{Handle: b.add, Replay: slices.Values([]int{10, 20})})
	q.Push(4)
	q.Drain()
	q.Subscribe(subscription{Handle: c.add, Replay: slices.Values([]int{30})})
	q.Push(5)
	q.Drain()
	a.want(t, 1, 2, 3, 4, 5)
	b.want(t, 10, 20, 4, 5)
	c.want(t, 30, 5)
}

func TestHandlersRunInOrderOfRegistration(t *testing.T) {
	q := notify.New(options{})
	var l log[string]
	for _, name := range []string{"a", "b", "c"} {
		q.Subscribe(subscription{Handle: func(v int) { l.add(name + string(rune('0'+v))) }})
	}
	q.Push(1, 2)
	q.Drain()
	l.want(t, "a1", "b1", "c1", "a2", "b2", "c2")
}

func TestWants(t *testing.T) {
	q := notify.New(options{})
	even := func(v int) bool { return v%2 == 0 }
	var one, many log[int]
	q.Subscribe(subscription{Handle: one.add, Wants: even, Replay: slices.Values([]int{1})})
	q.Subscribe(subscription{Wants: even, Replay: slices.Values([]int{1}), Batch: func(vs []int) {
		for _, v := range vs {
			many.add(v)
		}
	}})
	q.Push(2, 3, 4)
	q.Push(5)
	q.Drain()
	one.want(t, 1, 2, 4)
	many.want(t, 1, 2, 4)
}

func TestBatch(t *testing.T) {
	q := notify.New(options{})
	var l log[string]
	q.Subscribe(subscription{Batch: func(vs []int) { l.add("batch of " + string(rune('0'+len(vs)))) }, Wants: func(v int) bool { return v > 0 }})
	q.Subscribe(subscription{Handle: func(v int) {
		l.add("single")
		if v == 1 {
			q.Push(4) // is queued while the batch is in progress: not part of it
		}
	}})
	q.Push(0)
	q.Drain()
	l.want(t, "single") // a batch handler is not called with nothing
	q.Push(1, 2)
	q.Push(3)
	q.Drain()
	l.want(t, "single", "single", "single", "single", "batch of 3", "single", "batch of 1")
}

// A batch handler keeps the slice for itself: it may modify and keep it.
func TestBatchIsTheHandlersOwn(t *testing.T) {
	q := notify.New(options{})
	var kept [][]int
	for range 2 {
		q.Subscribe(subscription{Batch: func(vs []int) {
			kept = append(kept, vs)
			vs[0] *= 10
		}})
	}
	q.Push(1)
	q.Drain()
	q.Push(2)
	q.Drain()
	if !slices.EqualFunc(kept, [][]int{{10}, {10}, {20}, {20}}, slices.Equal) {
		t.Errorf("kept %v", kept)
	}
}

func TestCancel(t *testing.T) {
	q := notify.New(options{})
	var a, b, c log[int]
	var cancelA func()
	cancelA = q.Subscribe(subscription{Handle: func(v int) {
		a.add(v)
		if v == 1 {
			cancelA() // in the handler itself
		}
	}})
	cancelB := q.Subscribe(subscription{Batch: func(vs []int) { b.add(len(vs)) }})
	cancelC := q.Subscribe(subscription{Handle: c.add, Replay: slices.Values([]int{7, 8, 9})})
	q.Push(1, 2)
	cancelC() // before it was reached
	cancelC()
	q.Drain()
	cancelB()
	q.Push(3)
	q.Drain()
	a.want(t, 1)
	b.want(t, 2)
	c.want(t)
}

func TestCancelAmidReplayAndBatch(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	var cancel, cancelBatch func()
	cancelBatch = q.Subscribe(subscription{Batch: func([]int) { l.add(100) }})
	q.Push(4)
	cancel = q.Subscribe(subscription{Replay: slices.Values([]int{1, 2, 3}), Handle: func(v int) {
		l.add(v)
		if v == 2 {
			cancel()
			cancelBatch() // its batch is collected, but it was not called yet
		}
	}})
	q.Push(5)
	q.Drain()
	l.want(t, 1, 2)
}

// Without subscribers nothing is kept, whoever they were.
func TestNothingIsKeptForNobody(t *testing.T) {
	q := notify.New(options{})
	q.Push(1)
	if err := q.Flush(t.Context()); err != nil { // would wait for ever
		t.Error(err)
	}
	cancel := q.Subscribe(subscription{Handle: func(int) {}})
	cancel()
	q.Push(2)
	var l log[int]
	q.Subscribe(subscription{Handle: l.add})
	q.Push(3)
	q.Drain()
	l.want(t, 3)
}

func TestSubscriptionNeedsOneHandler(t *testing.T) {
	q := notify.New(options{})
	for name, s := range map[string]subscription{
		"none": {}, "both": {Handle: func(int) {}, Batch: func([]int) {}},
	} {
		if !panics(func() { q.Subscribe(s) }) {
			t.Errorf("Subscribe with %s handlers returned", name)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func TestHandlersMayPushAndSubscribe(t *testing.T) {
	q := notify.New(options{})
	var a, b log[int]
	q.Subscribe(subscription{Handle: func(v int) {
		a.add(v)
		if v < 3 {
			q.Push(v + 1)
		}
		if v == 2 {
			q.Subscribe(subscription{Handle: b.add, Replay: slices.Values([]int{0})})
			q.Push(30)
		}
	}})
	q.Push(1)
	q.Drain()
	a.want(t, 1, 2, 3, 30)
	b.want(t, 0, 30) // 3 was pushed before
}

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
	q := notify.New(options{Name: "thing"})
	run(q)()
	defer func() {
		if got, want := recover(), "thing: Run called twice"; got != want {
			t.Errorf("a second Run panics with %v, want %q", got, want)
		}
	}()
	q.Run(nil)
}

// Run finishes the call in progress and the batch of what was handled, and drops
// the rest.
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
	l.want(t, 1, 10, 2, 20, 102)
	q.Push(4)
	q.Subscribe(subscription{Handle: l.add, Replay: slices.Values([]int{5})})()
	q.Drain()
	l.want(t, 1, 10, 2, 20, 102)
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

// A panic leaves the queue as if the call had returned: whoever drains next goes
// on with the next handler of the same value.
func TestPanic(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	var batch log[int]
	explode := true
	fuse := func(v int) {
		if explode {
			panic(v)
		}
	}
	q.Subscribe(subscription{Batch: func(vs []int) { batch.add(len(vs)); fuse(len(vs)) }})
	q.Subscribe(subscription{Handle: func(v int) { l.add(v); fuse(v) }, Replay: slices.Values([]int{1, 2})})
	q.Subscribe(subscription{Handle: func(v int) { l.add(10 * v) }})
	q.Push(3)
	for _, after := range [][]int{{1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 30}} {
		if !panics(q.Drain) {
			t.Fatal("the panic of a handler was swallowed")
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

// If the host recovers from a panic that ended Run, it can go on with Drain.
func TestPanicInRun(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	q.Subscribe(subscription{Handle: func(v int) {
		l.add(v)
		if v == 1 {
			panic("once")
		}
	}})
	q.Push(1, 2)
	if !panics(func() { q.Run(nil) }) {
		t.Fatal("Run swallowed the panic of a handler")
	}
	q.Push(3)
	q.Drain()
	l.want(t, 1, 2, 3)
}

// What a Drain that panicked left behind, a sleeping Run takes up.
func TestPanicInDrainBesideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		var l log[int]
		proceed := make(chan struct{})
		q.Subscribe(subscription{Handle: func(v int) {
			l.add(v)
			if v == 1 {
				<-proceed
				panic("once")
			}
		}})
		q.Push(1, 2)
		drained := make(chan bool)
		go func() { drained <- panics(q.Drain) }()
		synctest.Wait()
		defer run(q)()
		synctest.Wait() // Run sleeps: somebody else delivers
		close(proceed)
		if !<-drained {
			t.Error("Drain swallowed the panic of a handler")
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

// Drain beside Run: the handlers still run one at a time and see one order.
func TestDrainBesideRun(t *testing.T) {
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
}

// A value that is pushed at the moment when the worker goes to sleep wakes it.
func TestNoWakeUpIsLost(t *testing.T) {
	q := notify.New(options{})
	n := 0
	q.Subscribe(subscription{Handle: func(int) { n++ }})
	end := run(q)
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := notify.New(options{})
		if err := q.Flush(t.Context()); err != nil {
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
		if err := q.Flush(ctx); !errors.Is(err, cause) {
			t.Errorf("Flush with an ended context = %v, want its cause", err)
		}
		end := run(q)
		if err := q.Flush(t.Context()); err != nil {
			t.Errorf("Flush = %v", err)
		}
		l.want(t, 1, 2, -2)
		q.Push(3, 4)
		synctest.Wait() // 3 is being handled
		var flushed error
		var wg sync.WaitGroup
		wg.Go(func() { flushed = q.Flush(t.Context()) })
		synctest.Wait()
		end()
		wg.Wait()
		if !errors.Is(flushed, notify.ErrStopped) {
			t.Errorf("Flush when Run ends = %v, want ErrStopped", flushed)
		}
		l.want(t, 1, 2, -2, 3, -1)
	})
}

func TestHasSynced(t *testing.T) {
	q := notify.New(options{})
	var l log[int]
	published := true
	source := func() bool { return published }
	if q.HasSynced(source) {
		t.Error("synced before anything was delivered")
	}
	published = false
	q.Subscribe(subscription{Replay: slices.Values([]int{1}), Handle: l.add})
	q.Drain()
	l.want(t, 1)
	if q.HasSynced(source) {
		t.Error("synced before the source")
	}
	q.Push(2)
	published = true
	if q.HasSynced(source) {
		t.Error("synced before the initial state was handled")
	}
	q.Push(3) // after the initial state
	q.Drain()
	if !q.HasSynced(source) {
		t.Error("not synced")
	}
	published = false
	q.Push(4)
	if !q.HasSynced(source) {
		t.Error("no longer synced")
	}
}

func TestHasSyncedIncludesReplays(t *testing.T) {
	q := notify.New(options{})
	during := false
	q.Subscribe(subscription{Replay: slices.Values([]int{1, 2}), Handle: func(int) {
		during = during || q.HasSynced(nil)
	}})
	q.Drain()
	if during {
		t.Error("synced while a replay was being handled")
	}
	if !q.HasSynced(nil) {
		t.Error("not synced")
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct {
			took     time.Duration
			first, n int
		}
		var slow log[call]
		q := notify.New(options{
			SlowAfter: 10 * time.Millisecond,
			Slow:      func(took time.Duration, first, n int) { slow.add(call{took, first, n}) },
		})
		wait := func(v int) { time.Sleep(time.Duration(v) * time.Millisecond) }
		q.Subscribe(subscription{Handle: wait, Replay: slices.Values([]int{12})})
		q.Subscribe(subscription{Batch: func(vs []int) { wait(vs[0] * 2) }})
		q.Push(6, 5, 20)
		q.Drain()
		ms := time.Millisecond
		slow.want(t, call{12 * ms, 12, 1}, call{20 * ms, 20, 1}, call{12 * ms, 6, 3})
	})
}

// Many publishers, each in order under one lock: every handler sees the order of
// the lock.
func TestOrderIsThatOfThePublishersLock(t *testing.T) {
	q := notify.New(options{})
	var mu sync.Mutex
	n := 0
	var single, batch log[int]
	q.Subscribe(subscription{Handle: single.add})
	q.Subscribe(subscription{Batch: func(vs []int) {
		for _, v := range vs {
			batch.add(v)
		}
	}})
	end := run(q)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				mu.Lock()
				q.Push(n)
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	single.want(t, want...)
	batch.want(t, want...)
}
