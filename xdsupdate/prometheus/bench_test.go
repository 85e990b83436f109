// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// BenchmarkPush changes a service until all clients have accepted it, with and without metrics.
func BenchmarkPush(b *testing.B) {
	for _, clients := range []int{1, 100} {
		for _, observed := range []struct {
			name     string
			observer ads.Observer
		}{{"none", nil}, {"metrics", prometheus.New()}} {
			b.Run(fmt.Sprintf("%s/clients=%d", observed.name, clients), func(b *testing.B) {
				f := serve(b, ads.Options{Observer: observed.observer}, "a")
				f.flush()
				for i := range clients {
					f.client(xdstest.ClientOptions{Delta: true, Node: node(fmt.Sprint("n", i)), NoHistory: true}, envoy.LoadAssignmentType)
				}
				ctx := b.Context()
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					n++
					f.set("a", fmt.Sprintf("10.0.%d.%d", n>>8&255, n&255))
					if err := f.WaitApplied(ctx, nil); err != nil {
						b.Fatal(err)
					}
				}
				if m, ok := observed.observer.(*prometheus.Metrics); ok {
					acks := scrape(b, registered(b, m))[typed("pilotkit_xds_acks_total", envoy.LoadAssignmentType)]
					if acks < float64((n-1)*clients) { // the last ones may not be counted yet
						b.Errorf("%v responses were accepted, of %d changes for %d clients", acks, n, clients)
					}
				}
			})
		}
	}
}

// BenchmarkEvents measures the cost of one push for an observer: the push, and one client that is
// sent a response and accepts it.
func BenchmarkEvents(b *testing.B) {
	for name, observer := range map[string]ads.Observer{"none": ads.NoObserver{}, "metrics": prometheus.New()} {
		stream := ads.Stream{ID: 1, Delta: true, Node: "n"}
		request := &xdsupdate.PushRequest{Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonEndpoint: 1}}
		b.Run("push/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				observer.Pushed(ads.PushEvent{Request: request, Waited: time.Millisecond, Took: time.Millisecond})
			}
		})
		b.Run("client/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				observer.Response(stream, ads.ResponseEvent{TypeURL: envoy.LoadAssignmentType, Resources: 1, Bytes: 200})
				observer.Request(stream, ads.RequestEvent{TypeURL: envoy.LoadAssignmentType, Nonce: "1", Bytes: 100})
				observer.Converged(stream, envoy.LoadAssignmentType, time.Millisecond)
			}
		})
	}
}

// BenchmarkScrape collects all metrics: the counted ones, and the ones that read the server's
// proxies and endpoints.
func BenchmarkScrape(b *testing.B) {
	metrics := prometheus.New()
	hosts := make([]string, 1000)
	for i := range hosts {
		hosts[i] = fmt.Sprint("h", i)
	}
	f := serve(b, ads.Options{Observer: metrics}, hosts...)
	f.flush()
	conn := f.dial()
	for i := range 1000 {
		c := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true, Node: node(fmt.Sprint("n", i)), NoHistory: true})
		b.Cleanup(c.Close)
		if err := c.Connect(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, url := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
			if err := c.Subscribe(url, "outbound|80||h1"); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := f.WaitApplied(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]client.Collector{"observer": metrics, "server": prometheus.NewServerCollector(f.Server)} {
		all := registered(b, c)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := all.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("limit", func(b *testing.B) { // what asks the server alone
		b.ReportAllocs()
		for b.Loop() {
			if len(f.Proxies()) == 0 {
				b.Fatal("no proxies")
			}
		}
	})
}
