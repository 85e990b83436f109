// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return milliseconds(sorted[(len(sorted)-1)*p/100])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// churnTimes are the measurements of BenchmarkPushUnderChurn.
type churnTimes struct{ pushes, loops, endpoints []time.Duration }

// measure takes some times: of pushes of everything, in turns with loops, and of the
// endpoints that change meanwhile.
func (t *churnTimes) measure(m *mesh, l loop) {
	stop := m.follow()
	for range 20 {
		t.pushes = append(t.pushes, m.pushEverything())
		time.Sleep(5 * time.Millisecond)
		t.loops = append(t.loops, l.run())
		time.Sleep(5 * time.Millisecond)
	}
	t.endpoints = append(t.endpoints, stop()...)
}

func (t *churnTimes) report(b *testing.B, name string) {
	b.Helper()
	for _, list := range [][]time.Duration{t.pushes, t.loops, t.endpoints} {
		slices.Sort(list)
	}
	b.ReportMetric(percentile(t.pushes, 50), name+"-ms/push")
	b.ReportMetric(percentile(t.loops, 50), name+"-ms/loop")
	b.ReportMetric(percentile(t.endpoints, 99), name+"-p99-ms")
}

// loop is a number of steps of work that no other code depends on: after the wait of a push, on a
// goroutine of its own, as a push is. It is slower only if others have the processors.
type loop int

// newLoop returns one that takes so long on a processor that it has for itself.
func newLoop(long time.Duration) loop {
	const steps = 100_000
	once := time.Hour
	for range 50 {
		begun := time.Now()
		runtime.KeepAlive(loop(steps).work())
		once = min(once, time.Since(begun))
	}
	return loop(steps * long / once)
}

func (l loop) work() (sum uint64) {
	for range l {
		sum = sum*6364136223846793005 + 1
	}
	return sum
}

func (l loop) run() time.Duration {
	begun := time.Now()
	done := make(chan uint64)
	go func() {
		time.Sleep(meshDebounce)
		done <- l.work()
	}()
	<-done
	return time.Since(begun)
}

// BenchmarkPushUnderChurn pushes everything, again and again, while each registry changes an
// endpoint every millisecond, and compares that with the same without changes: the time of a push,
// the time of an endpoint to its client, and the longest time that a change held up a registry. It
// also measures two activities that no push holds up: a loop that needs the processor for as long
// as a quiet push, and the calls of a registry that is not served.
func BenchmarkPushUnderChurn(b *testing.B) {
	for _, n := range []int{1000, 20_000, 50_000} {
		for _, registries := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("services=%d/registries=%d", n, registries), func(b *testing.B) {
				m := newMesh(b, n, registries)
				m.connect(b)
				l := newLoop(m.quietWork())
				var quiet, churn churnTimes
				quiet.measure(m, l)
				m.calls, m.apartCalls = callTimes{}, callTimes{}
				stop := m.churn()
				for b.Loop() {
					churn.measure(m, l)
				}
				stop()
				quiet.report(b, "quiet")
				churn.report(b, "churn")
				b.ReportMetric(milliseconds(time.Duration(m.calls.longest.Load())), "longest-call-ms")
				b.ReportMetric(milliseconds(time.Duration(m.apartCalls.longest.Load())), "longest-apart-ms")
				b.ReportMetric(float64(m.calls.count.Load())/b.Elapsed().Seconds(), "changes/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
