// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// oneKey returns requests for one of n keys each.
func oneKey(n int) []*request {
	out := make([]*request, n)
	for i := range out {
		out[i] = endpointPush("service-" + strconv.Itoa(i) + ".example.com")
	}
	return out
}

// BenchmarkCoalesce merges requests for one key each into a pending one that has
// n keys: what a Pusher does for each event while nothing is pushed.
func BenchmarkCoalesce(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			p := xdsupdate.NewPusher(func(*request) {}, xdsupdate.PusherOptions{})
			requests, i := oneKey(n), 0
			for _, r := range requests {
				p.ConfigUpdate(r)
			}
			for b.Loop() {
				p.ConfigUpdate(requests[i])
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkCoalesceEndpoints is the same for changes of endpoints, the work of
// the index included.
func BenchmarkCoalesceEndpoints(b *testing.B) {
	b.ReportAllocs()
	p := xdsupdate.NewPusher(func(*request) {}, xdsupdate.PusherOptions{})
	for b.Loop() {
		p.EDSUpdate(shardOf("c1"), host, ns, nil)
	}
}

// BenchmarkCoalesceParallel is the same from several goroutines.
func BenchmarkCoalesceParallel(b *testing.B) {
	b.ReportAllocs()
	p := xdsupdate.NewPusher(func(*request) {}, xdsupdate.PusherOptions{})
	requests := oneKey(100)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			p.ConfigUpdate(requests[i%len(requests)])
		}
	})
}

// BenchmarkMerge merges a request for one key into one that has n keys, by the
// pure function: "new" copies, "known" shares.
func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		var pending *request
		for _, r := range oneKey(n) {
			pending = pending.Merge(r)
		}
		known := oneKey(1)[0]
		for name, r := range map[string]*request{"new": endpointPush("new"), "known": known} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					pending.Merge(r)
				}
			})
		}
	}
}

// BenchmarkLimitCoalesce is the least: a single writer puts keys into a map.
func BenchmarkLimitCoalesce(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			pending, i := map[xdsupdate.ConfigKey]struct{}{}, 0
			var list []xdsupdate.ConfigKey
			for _, r := range oneKey(n) {
				list = append(list, r.Keys()...)
			}
			for b.Loop() {
				pending[list[i]] = struct{}{}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkLimitCoalesceThroughChannel sends keys to a writer through a buffered
// channel.
func BenchmarkLimitCoalesceThroughChannel(b *testing.B) {
	b.ReportAllocs()
	events, done := make(chan xdsupdate.ConfigKey, 1024), make(chan struct{})
	go func() {
		defer close(done)
		pending := map[xdsupdate.ConfigKey]struct{}{}
		for key := range events {
			pending[key] = struct{}{}
		}
	}()
	key := xdsupdate.ServiceKey(host, ns)
	for b.Loop() {
		events <- key
	}
	close(events)
	<-done
}

// BenchmarkPushLatency is the time from an endpoint change to its push, and back,
// when nothing was asked before: the change is pushed at once.
func BenchmarkPushLatency(b *testing.B) {
	for name, opts := range map[string]xdsupdate.PusherOptions{
		"zero-debounce": {Debounce: xdsupdate.Debounce{After: -1}},
		"leading-edge":  {Debounce: xdsupdate.Debounce{After: time.Nanosecond}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			pushed, stop, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			p := xdsupdate.NewPusher(func(*request) { pushed <- struct{}{} }, opts)
			go func() {
				defer close(done)
				p.Run(stop)
			}()
			lists, i := [2][]*registry.Endpoint{eps(ep("1.1.1.1")), eps(ep("2.2.2.2"))}, 0
			p.EDSCacheUpdate(shardOf("c1"), host, ns, lists[0])
			for b.Loop() {
				i = 1 - i
				p.EDSUpdate(shardOf("c1"), host, ns, lists[i])
				<-pushed
			}
			close(stop)
			<-done
		})
	}
}

// BenchmarkLimitHandOff sends something to a goroutine and back.
func BenchmarkLimitHandOff(b *testing.B) {
	there, back := make(chan struct{}), make(chan struct{})
	go func() {
		for range there {
			back <- struct{}{}
		}
	}()
	for b.Loop() {
		there <- struct{}{}
		<-back
	}
	close(there)
}
