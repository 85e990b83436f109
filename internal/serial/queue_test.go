// SPDX-License-Identifier: Apache-2.0

package serial_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/serial"
)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestAddHandlesAtOnce(t *testing.T) {
	t.Parallel()
	var got [][]int
	q := serial.NewQueue(func(items []int) { got = append(got, slices.Clone(items)) })
	q.Add()
	q.Add(1)
	q.Add(2, 3)
	diff(t, "batches", got, [][]int{{1}, {2, 3}})
	diff(t, "Idle", q.Idle(), true)
}

// What is added while an item is handled is handled after it, in one batch and by
// the same call.
func TestAddFromWithin(t *testing.T) {
	t.Parallel()
	var got [][]int
	var q *serial.Queue[int]
	q = serial.NewQueue(func(items []int) {
		got = append(got, slices.Clone(items))
		diff(t, "Idle", q.Idle(), false)
		if items[0] == 1 {
			q.Add(2)
			q.Add(3)
			diff(t, "batches so far", got, [][]int{{1}})
		}
		// The slice stays the function's own until it returns.
		diff(t, "items", items, got[len(got)-1])
	})
	q.Add(1)
	diff(t, "batches", got, [][]int{{1}, {2, 3}})
}

// An Add while another goroutine works leaves its item to that one.
func TestAddWhileBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got [][]int
		proceed := make(chan struct{})
		q := serial.NewQueue(func(items []int) {
			<-proceed
			got = append(got, slices.Clone(items))
		})
		go q.Add(1)
		synctest.Wait()
		q.Add(2)
		q.Add(3)
		close(proceed)
		synctest.Wait()
		diff(t, "batches", got, [][]int{{1}, {2, 3}})
		diff(t, "Idle", q.Idle(), true)
	})
}

func TestPanicLeavesQueueUsable(t *testing.T) {
	t.Parallel()
	var got []int
	q := serial.NewQueue(func(items []int) {
		if items[0] == 1 {
			panic("first")
		}
		got = append(got, items...)
	})
	func() {
		defer func() { diff(t, "recovered", recover(), any("first")) }()
		q.Add(1)
	}()
	q.Add(2)
	diff(t, "handled after a panic", got, []int{2})
}

// Nothing is lost, doubled or handled by two at a time, and the items of each
// goroutine stay in order.
func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 2000
	type item struct{ from, number int }
	working := make(chan struct{}, 1)
	next := [goroutines]int{}
	q := serial.NewQueue(func(items []item) {
		select {
		case working <- struct{}{}:
		default:
			t.Error("two calls at a time")
		}
		for _, i := range items {
			if next[i.from] != i.number {
				t.Errorf("item %d of %d after %d", i.number, i.from, next[i.from]-1)
			}
			next[i.from] = i.number + 1
		}
		<-working
	})
	var all sync.WaitGroup
	for from := range goroutines {
		all.Go(func() {
			for number := range each {
				q.Add(item{from, number})
			}
		})
	}
	all.Wait()
	for from, n := range next {
		if n != each {
			t.Errorf("%d items of %d, want %d", n, from, each)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	q := serial.NewQueue(func([]int) {})
	b.ReportAllocs()
	for b.Loop() {
		q.Add(1)
	}
}
