// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestScrape follows two proxies through pushes, a NACK, and the end of their streams; other
// clients are rejected.
func TestScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.New()
		f := serve(t, ads.Options{
			Observer: metrics, Limits: ads.Limits{Streams: 2},
			Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) {
				if strings.Contains(node.GetId(), "bad") {
					return nil, status.Error(codes.PermissionDenied, "no")
				}
				return ads.ProxyOf(node), nil
			},
		}, "a")
		all := registered(t, metrics, prometheus.NewServerCollector(f.Server))
		f.flush()
		synctest.Wait() // the observer is notified of a push after the flush
		before := scrape(t, all)
		series(t, "in the beginning", before, map[string]float64{
			`pilotkit_xds_connected_proxies{protocol="delta"}`: 0, typed("pilotkit_xds_nacks_total", envoy.ClusterType): 0,
			`pilotkit_services`: 1, `pilotkit_endpoints`: 1,
		})

		f.refused(node("bad"))
		synctest.Wait()
		one := f.client(xdstest.ClientOptions{Delta: true, Node: node("one"), Manual: true}, envoy.ClusterType)
		if err := one.Ack(f.next(one)); err != nil {
			t.Fatal(err)
		}
		f.client(xdstest.ClientOptions{Node: node("two")}, envoy.ClusterType)
		synctest.Wait()
		f.refused(node("three"))
		f.set("b", "10.0.0.2", "10.0.0.3")
		if err := one.Nack(f.next(one), "not this one"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		after := scrape(t, all)
		series(t, "after a refusal", after, map[string]float64{
			`pilotkit_xds_connected_proxies{protocol="delta"}`: 1, `pilotkit_xds_connected_proxies{protocol="sotw"}`: 1,
			`pilotkit_xds_streams_opened_total{protocol="delta"}`:                 1,
			`pilotkit_xds_streams_refused_total{code="PermissionDenied"}`:         1,
			`pilotkit_xds_streams_refused_total{code="ResourceExhausted"}`:        1,
			labelled("pilotkit_xds_limited_streams_total", "limit", "Streams"):    1,
			labelled("pilotkit_xds_limited_streams_total", "limit", "Types"):      0,
			typed("pilotkit_xds_subscription_requests_total", envoy.ClusterType):  2,
			typed("pilotkit_xds_acks_total", envoy.ClusterType):                   3,
			typed("pilotkit_xds_nacks_total", envoy.ClusterType):                  1,
			typed("pilotkit_xds_responses_total", envoy.ClusterType):              4,
			typed("pilotkit_xds_sent_resources_total", envoy.ClusterType):         5, // two, and of SotW one, then two
			typed("pilotkit_xds_convergence_seconds_count", envoy.ClusterType):    1,
			typed("pilotkit_xds_subscriptions", envoy.ClusterType):                2,
			typed("pilotkit_xds_refused_resources", envoy.ClusterType):            1,
			typed("pilotkit_xds_refused_resources", envoy.LoadAssignmentType):     0,
			typed("pilotkit_xds_pending_subscriptions", envoy.LoadAssignmentType): 0,
			`pilotkit_services`: 2, `pilotkit_endpoints`: 3,
		})
		pushes := func(of map[string]float64) (n float64) {
			for _, kind := range []string{"full", "forced", "endpoints"} {
				n += of[labelled("pilotkit_pushes_total", "kind", kind)]
				for _, histogram := range []string{"pilotkit_push_duration_seconds", "pilotkit_push_debounce_seconds"} {
					check(t, histogram, of[labelled(histogram+"_count", "kind", kind)], of[labelled("pilotkit_pushes_total", "kind", kind)])
				}
			}
			return n
		}
		if pushes(after) <= pushes(before) || after[`pilotkit_pushes_total{kind="full"}`] == 0 {
			t.Errorf("pushes: %v, then %v, full ones %v", pushes(before), pushes(after), after[`pilotkit_pushes_total{kind="full"}`])
		}
		for _, bytes := range []string{"pilotkit_xds_received_bytes_total", "pilotkit_xds_sent_bytes_total"} {
			if after[typed(bytes, envoy.ClusterType)] < 100 {
				t.Errorf("%s: %v", bytes, after[typed(bytes, envoy.ClusterType)])
			}
		}
		if got := after[`pilotkit_push_requests_total{reason="service"}`]; got <= before[`pilotkit_push_requests_total{reason="service"}`] {
			t.Errorf("requests because of services: %v", got)
		}

		one.Close()
		synctest.Wait()
		series(t, "after a disconnect", scrape(t, all), map[string]float64{
			`pilotkit_xds_connected_proxies{protocol="delta"}`: 0, `pilotkit_xds_connected_proxies{protocol="sotw"}`: 1,
			`pilotkit_xds_streams_closed_total{code="Canceled"}`:       1,
			typed("pilotkit_xds_refused_resources", envoy.ClusterType): 0,
		})
		f.stopNow()
		last := scrape(t, all)
		closed := 0.0 // by the server, or by the end of its connection
		for _, code := range []string{"Canceled", "Unavailable"} {
			closed += last[labelled("pilotkit_xds_streams_closed_total", "code", code)]
		}
		check(t, "streams that ended", closed, 2)
		series(t, "after the end", last, map[string]float64{
			`pilotkit_xds_connected_proxies{protocol="sotw"}`:         0,
			typed("pilotkit_xds_subscriptions", envoy.ClusterType):    0,
			typed("pilotkit_xds_refused_resources", "other"):          0,
			typed("pilotkit_xds_convergence_seconds_count", "other"):  0,
			`pilotkit_xds_streams_refused_total{code="Unavailable"}`:  0,
			`pilotkit_xds_streams_opened_total{protocol="sotw"}`:      1,
			`pilotkit_xds_streams_closed_total{code="other"}`:         0,
			typed("pilotkit_xds_overdue_subscriptions", "other"):      0,
			typed("pilotkit_xds_quarantined_resources", "other"):      0,
			typed("pilotkit_xds_overdue_responses_total", "other"):    0,
			typed("pilotkit_xds_failed_resources", envoy.ClusterType): 0,
		})
	})
}

// TestConvergence: a client takes 7 ms, and its time is in the bucket of 10 ms.
func TestConvergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.New()
		f := serve(t, ads.Options{Observer: metrics}, "a")
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("one"), Manual: true}, envoy.ClusterType)
		_ = c.Ack(f.next(c))
		f.set("b", "10.0.0.2")
		r := f.next(c)
		time.Sleep(7 * time.Millisecond)
		_ = c.Ack(r)
		synctest.Wait()
		series(t, "convergence", scrape(t, registered(t, metrics)), map[string]float64{
			typed("pilotkit_xds_convergence_seconds_sum", envoy.ClusterType):                           .007,
			typed("pilotkit_xds_convergence_seconds_count", envoy.ClusterType):                         1,
			`pilotkit_xds_convergence_seconds_bucket{type_url="` + envoy.ClusterType + `",le="0.005"}`: 0,
			`pilotkit_xds_convergence_seconds_bucket{type_url="` + envoy.ClusterType + `",le="0.01"}`:  1,
		})
	})
}

// TestOverdue: an Envoy does not answer a new cluster, and a route to it waits for that.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.New()
		f := serve(t, ads.Options{Observer: metrics})
		f.leads("r", "a")
		f.flush()
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("one"), Manual: true}, envoy.ClusterType)
		if err := c.Subscribe(envoy.RouteType, "r"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Ack(f.next(c)); err != nil {
				t.Fatal(err)
			}
		}
		f.leads("r", "b")
		all := registered(t, metrics, prometheus.NewServerCollector(f.Server))
		overdue, reported := typed("pilotkit_xds_overdue_subscriptions", envoy.ClusterType),
			typed("pilotkit_xds_overdue_responses_total", envoy.ClusterType)
		synctest.Wait()
		series(t, "not answered", scrape(t, all), map[string]float64{
			typed("pilotkit_xds_pending_subscriptions", envoy.ClusterType): 1,
			typed("pilotkit_xds_pending_subscriptions", envoy.RouteType):   1, overdue: 0, reported: 0,
		})
		time.Sleep(16 * time.Second)
		synctest.Wait()
		series(t, "overdue", scrape(t, all), map[string]float64{overdue: 1, reported: 1})
	})
}

// failing is a provider that panics, then provides nothing, then a cluster that cannot be built.
type failing struct{ calls int } // by one goroutine at a time

func (*failing) Name() string                          { return "failing" }
func (*failing) Attach(xdsupdate.XDSUpdater)           {}
func (*failing) Group(*core.Node, *registry.Proxy) any { return nil }

func (p *failing) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	switch p.calls++; p.calls {
	case 1:
		panic("a fault")
	case 2:
		return nil, ads.Changes{}
	default:
		return unbuildable{}, ads.Changes{}
	}
}

// unbuildable has the cluster "x", which cannot be built.
type unbuildable struct{}

func (unbuildable) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	if typeURL != envoy.ClusterType {
		return nil, false
	}
	return slices.Values([]string{"x"}), false
}

func (unbuildable) Covers(_ ads.View, typeURL, name string) (covered, only bool) {
	return typeURL == envoy.ClusterType && name == "x", false
}

func (u unbuildable) Lookup(v ads.View, typeURL, name string) ads.Answer {
	if covered, _ := u.Covers(v, typeURL, name); !covered {
		return ads.Answer{Next: true}
	}
	return ads.Answer{Build: func() (proto.Message, error) { return nil, errors.New("the third fault") }}
}

// TestFailures follows a provider that fails in all ways.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.New()
		f := serve(t, ads.Options{Observer: metrics, Providers: []ads.Provider{&failing{}}}, "a")
		all := registered(t, metrics, prometheus.NewServerCollector(f.Server))
		f.flush()
		f.client(xdstest.ClientOptions{Delta: true, Node: node("one")}, envoy.ClusterType)
		synctest.Wait()
		for _, host := range []string{"b", "c", "d"} {
			f.set(host, "10.0.0.1")
			f.flush()
		}
		synctest.Wait()
		got := scrape(t, all)
		series(t, "failures", got, map[string]float64{
			`pilotkit_panics_total{part="provider"}`: 1, `pilotkit_panics_total{part="other"}`: 0,
			`pilotkit_xds_resource_failures_total{cause="quarantined"}`: 0,
			typed("pilotkit_xds_failed_resources", envoy.ClusterType):   1,
		})
		if n := got[`pilotkit_xds_resource_failures_total{cause="other"}`]; n < 2 {
			t.Errorf("%v failures", n)
		}
	})
}
