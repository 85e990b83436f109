// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// BenchmarkLastOfMany: an endpoint changes that many clients, in another process, are
// subscribed to, until the last of them has received it. The CPU time is the
// server's.
func BenchmarkLastOfMany(b *testing.B) {
	for _, clients := range []int{100, 1_000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, names := benchServer(b, 1_000)
			const host = "service-00007.example.com"
			old, spare := benchEndpoints(0), benchEndpoints(1)
			f.eds(host, "shop", old...)
			f.flush()
			process := startClients(b, f.listener.Addr().String())
			command := clientsCommand{Clients: clients, Delta: true, TypeURL: envoy.LoadAssignmentType, Resources: 1, Responses: 1 << 30}
			command.First = firstRequest(b, true, command.TypeURL, names[7:8], nil)
			process.start(command)
			process.wait()
			f.waitApplied()
			b.ReportAllocs()
			defer cputime.Report(b, "client", clients)()
			for b.Loop() {
				f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
				old[0], spare[0] = spare[0], old[0]
				process.wait()
			}
		})
	}
}

// BenchmarkChangeDuringConnects measures how long a client waits for the change of an endpoint
// while 200 others connect, again and again, and get 10,000 clusters each; and without other
// clients.
func BenchmarkChangeDuringConnects(b *testing.B) {
	for name, clients := range map[string]int{"quiet": 0, "storm": 200} {
		b.Run(name, func(b *testing.B) {
			f, names := benchServer(b, 10_000)
			address := f.listener.Addr().String()
			c, change := f.watched(b, address, names)
			connects, end := storm(b, address, clients, len(names))
			start := time.Now()
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				change()
				c.receive(b)
				took = append(took, time.Since(begun))
			}
			total := time.Since(start)
			end()
			b.ReportMetric(float64(connects.Load())*float64(clients)/total.Seconds(), "connects/s")
			reportQuantiles(b, took)
		})
	}
}

// watched returns a client that is subscribed to the assignment of one service, and what
// changes one of its endpoints.
func (f *fixture) watched(b *testing.B, address string, names []string) (c *rawClient, change func()) {
	b.Helper()
	const host = "service-00007.example.com"
	old, spare := benchEndpoints(0), benchEndpoints(1)
	f.eds(host, "shop", old...)
	f.flush()
	c = &rawClient{stream: dialRaw(b, address, deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType, names: names[7:8]}
	c.subscribe(b, 1)
	f.waitApplied()
	return c, func() {
		f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
		old[0], spare[0] = spare[0], old[0]
	}
}

// reportQuantiles reports the median, the 99th percentile and the maximum.
func reportQuantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

// storm has clients connect from another process, again and again, until end is
// called.
func storm(b *testing.B, address string, clients, resources int) (connects *atomic.Int64, end func()) {
	b.Helper()
	connects = new(atomic.Int64)
	if clients == 0 {
		return connects, func() {}
	}
	process := startClients(b, address)
	command := clientsCommand{Clients: clients, Delta: true, TypeURL: envoy.ClusterType, Resources: resources, Leave: true}
	command.First = firstRequest(b, true, command.TypeURL, nil, nil)
	process.start(command)
	process.wait() // it runs
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			process.start(command)
			process.wait()
			connects.Add(1)
		}
	}()
	return connects, func() {
		cancel()
		<-done
	}
}
