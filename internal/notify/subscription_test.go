// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

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

// A batch handler has the slice for itself until it returns: it may modify it.
func TestBatchIsTheHandlersOwn(t *testing.T) {
	q := notify.New(options{})
	var kept [][]int
	for range 2 {
		q.Subscribe(subscription{Batch: func(vs []int) {
			vs[0] *= 10
			kept = append(kept, slices.Clone(vs))
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

// Without subscribers no value is queued: neither before the first nor after the last one,
// cancelled once or twice.
func TestNothingIsQueuedWithoutSubscribers(t *testing.T) {
	q := notify.New(options{})
	queued := func(want int) {
		t.Helper()
		if n := q.Queued(); n != want {
			t.Errorf("%d entries are queued, want %d", n, want)
		}
	}
	q.Push(1)
	queued(0)
	cancel := q.Subscribe(subscription{Handle: func(int) {}})
	q.Subscribe(subscription{Handle: func(int) {}})()
	q.Drain()
	q.Push(2)
	queued(1)
	cancel()
	cancel()
	q.Push(2)
	queued(1)
	q.Drain()
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

// TestLoweredSizes runs tests of delivery with buffers that are never kept.
func TestLoweredSizes(t *testing.T) {
	testmain.Lowered(t, "^Test(Order|Replay|Batch|Cancel|Flush|HasSynced|Run|Handlers)")
}
