// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

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
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// The queue does not keep handled values alive, nor values dropped at the end of Run, nor the
// memory of a large burst.
func TestNothingIsKeptAlive(t *testing.T) {
	kept := func(q *queue, when string) {
		t.Helper()
		values, room := q.Kept()
		for _, v := range values {
			if v != 0 {
				t.Errorf("%s the queue keeps %d", when, v)
				break
			}
		}
		if room > 20000 {
			t.Errorf("%s the queue keeps room for %d values", when, room)
		}
	}
	q := notify.New(options{})
	stop := make(chan struct{})
	q.Subscribe(subscription{Handle: func(v int) {
		if v == 3 {
			q.Push(5, 6)
			close(stop)
		}
	}})
	q.Push(1, 2)
	q.Drain()
	kept(q, "after Drain")
	for range 30000 {
		q.Push(1)
	}
	q.Drain()
	kept(q, "after a burst")
	q.Push(3, 4)
	q.Run(stop)
	kept(q, "after Run")
}

// A snapshot is not kept alive once it was replayed, nor a handler that comes when Run
// has ended.
func TestNoSubscriptionIsKeptAlive(t *testing.T) {
	type state struct{ values [100]int }
	q := notify.New(options{})
	subscribe := func() weak.Pointer[state] {
		s := &state{}
		q.Subscribe(subscription{
			Handle: func(int) {},
			Replay: func(yield func(int) bool) { _ = yield(s.values[0]) },
		})
		return weak.Make(s)
	}
	gone := func(when string, s weak.Pointer[state]) {
		t.Helper()
		if runtime.GC(); s.Value() != nil {
			t.Errorf("%s the queue keeps what was to be replayed", when)
		}
	}
	replayed := subscribe()
	q.Drain()
	gone("after the replay", replayed)
	stop := make(chan struct{})
	close(stop)
	q.Run(stop)
	gone("after Run", subscribe())
	q.Push(7)
	if values, _ := q.Kept(); slices.Contains(values, 7) {
		t.Error("after Run the queue keeps what is pushed")
	}
	runtime.KeepAlive(q)
}
