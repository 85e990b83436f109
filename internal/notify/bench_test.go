// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/notify"
)

// BenchmarkDrain pushes a value and delivers it on the same goroutine.
func BenchmarkDrain(b *testing.B) {
	q := notify.New(options{})
	n := 0
	q.Subscribe(subscription{Handle: func(v int) { n += v }})
	b.ReportAllocs()
	for b.Loop() {
		q.Push(1)
		q.Drain()
	}
}

// BenchmarkRun pushes a value and waits until the worker has handled it.
func BenchmarkRun(b *testing.B) {
	q := notify.New(options{})
	handled := make(chan int, 1)
	q.Subscribe(subscription{Handle: func(v int) { handled <- v }})
	defer run(q)()
	b.ReportAllocs()
	for b.Loop() {
		q.Push(1)
		<-handled
	}
}

// BenchmarkRunLimit is the same round trip with two channels.
func BenchmarkRunLimit(b *testing.B) {
	values, handled := make(chan int), make(chan int, 1)
	go func() {
		for v := range values {
			handled <- v
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		values <- 1
		<-handled
	}
	close(values)
}

// BenchmarkBurst is the cost of one value of a burst of 1000.
func BenchmarkBurst(b *testing.B) {
	q := notify.New(options{})
	n, i := 0, 0
	q.Subscribe(subscription{Handle: func(v int) { n += v }})
	b.ReportAllocs()
	for b.Loop() {
		q.Push(1)
		if i++; i%1000 == 0 {
			q.Drain()
		}
	}
}
