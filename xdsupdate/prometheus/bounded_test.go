// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestBounded: 10,000 clients, each with a name, a type URL and a NACK text of its own, create no
// series.
func TestBounded(t *testing.T) {
	const together = 500
	clients := max(1, tier.Share(10_000)/together) * together
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.New()
		f := serve(t, ads.Options{Observer: metrics}, "a")
		f.flush()
		all := registered(t, metrics, prometheus.NewServerCollector(f.Server))
		before := scrape(t, all)
		for first := 0; first < clients; first += together {
			conn := f.dial()
			var open []*xdstest.Client
			for i := range together {
				open = append(open, invents(f, conn, first+i))
			}
			synctest.Wait()
			now := scrape(t, all)
			check(t, "connected", connected(now), float64(together))
			check(t, "subscriptions to other types", now[typed("pilotkit_xds_subscriptions", "other")], float64(together))
			for _, c := range open {
				c.Close()
			}
			synctest.Wait()
		}
		after := scrape(t, all)
		check(t, "series", names(after), names(before))
		series(t, "in the end", after, map[string]float64{
			typed("pilotkit_xds_subscription_requests_total", "other"):    float64(clients),
			typed("pilotkit_xds_nacks_total", envoy.ClusterType):          float64(clients),
			`pilotkit_xds_connected_proxies{protocol="delta"}`:            0,
			`pilotkit_xds_streams_opened_total{protocol="delta"}`:         float64(clients),
			`pilotkit_xds_streams_refused_total{code="PermissionDenied"}`: 0,
		})
	})
}

// invents returns a client that subscribes to an unknown type, and rejects clusters with a text of
// its own.
func invents(f *fixture, conn grpc.ClientConnInterface, i int) *xdstest.Client {
	f.t.Helper()
	c := xdstest.NewClient(conn, xdstest.ClientOptions{
		Delta: true, Node: node(fmt.Sprint("n", i)), NoHistory: true,
		Answer: func(xdstest.Response) error { return fmt.Errorf("refused %d", i) },
	})
	if err := c.Connect(f.context()); err != nil {
		f.t.Fatal(err)
	}
	for _, url := range []string{fmt.Sprint("type.googleapis.com/made.up.Type", i), envoy.ClusterType} {
		if err := c.Subscribe(url); err != nil {
			f.t.Fatal(err)
		}
	}
	return c
}

// TestBoundedEvents: no value in an event creates a series.
func TestBoundedEvents(t *testing.T) {
	metrics := prometheus.New()
	all := registered(t, metrics)
	before := names(scrape(t, all))
	const events = 10_000
	for i := range events {
		text := fmt.Sprint("made up ", i, "\xff\n\"")
		stream := ads.Stream{ID: uint64(i), Delta: i%2 == 0, Node: text, View: ads.View{Namespace: text}}
		err := status.Error(codes.Code(i), text)
		metrics.StreamOpened(stream)
		metrics.Request(stream, ads.RequestEvent{TypeURL: text, Nonce: text, Refused: i%3 == 0, Error: text})
		metrics.Response(stream, ads.ResponseEvent{TypeURL: text, Version: text, Nonce: text, Removed: 3})
		metrics.Converged(stream, text, time.Second)
		metrics.Overdue(stream, text, time.Second)
		metrics.Failed(&ads.Fault{Proxy: text, Status: ads.FaultLeftOut, Object: configstore.ConfigKey{Name: text}, Text: text})
		metrics.Failed(fmt.Errorf("wrapped: %w", &ads.Fault{Name: text, Text: text}))
		metrics.Failed(err)
		metrics.Panicked(ads.PanicEvent{In: text, Name: text, Times: 2, Err: err})
		metrics.Pushed(ads.PushEvent{Waited: 2 * time.Second, Took: 3 * time.Second, Request: &xdsupdate.PushRequest{
			Forced: i%2 == 0, Full: true, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.TriggerReason(text): 1, "odd": -1},
		}})
		metrics.StreamClosed(stream, err)
		metrics.StreamRefused(ads.Stream{Node: text}, err)
	}
	got := scrape(t, all)
	check(t, "series", names(got), before)
	series(t, "after the events", got, map[string]float64{
		typed("pilotkit_xds_responses_total", "other"):               events,
		typed("pilotkit_xds_nacks_total", "other"):                   3334,
		typed("pilotkit_xds_acks_total", "other"):                    6666,
		`pilotkit_xds_streams_refused_total{code="other"}`:           events - 17,
		`pilotkit_xds_streams_closed_total{code="other"}`:            events - 17,
		`pilotkit_xds_streams_refused_total{code="Unauthenticated"}`: 1,
		`pilotkit_xds_connected_proxies{protocol="delta"}`:           0,
		`pilotkit_xds_resource_failures_total{cause="quarantined"}`:  events,
		`pilotkit_xds_resource_failures_total{cause="left_out"}`:     events,
		`pilotkit_xds_resource_failures_total{cause="other"}`:        events,
		`pilotkit_panics_total{part="other"}`:                        2 * events,
		`pilotkit_push_requests_total{reason="other"}`:               events,
		`pilotkit_pushes_total{kind="forced"}`:                       events / 2,
		`pilotkit_push_debounce_seconds_sum{kind="full"}`:            events,
		`pilotkit_push_duration_seconds_sum{kind="full"}`:            events / 2 * 3,
		typed("pilotkit_xds_removed_resources_total", "other"):       3 * events,
		`pilotkit_pushes_total{kind="full"}`:                         events / 2,
		typed("pilotkit_xds_convergence_seconds_sum", "other"):       events,
	})
}

// TestKnownTypes: secrets, and the type URLs of the host, have label values of their own, once.
func TestKnownTypes(t *testing.T) {
	const own = "type.googleapis.com/example.Own"
	metrics := prometheus.New(prometheus.Options{TypeURLs: []string{own, own, envoy.ClusterType}})
	for _, url := range []string{secrets.Type, own} {
		metrics.Overdue(ads.Stream{}, url, time.Second)
		series(t, url, scrape(t, registered(t, metrics)), map[string]float64{typed("pilotkit_xds_overdue_responses_total", url): 1})
	}
	for _, bad := range []string{"", "other", "a\xff"} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "prometheus.New: Options.TypeURLs[0]") {
					t.Errorf("%q: %s", bad, text)
				}
			}()
			prometheus.New(prometheus.Options{TypeURLs: []string{bad}})
		}()
	}
}

func names(of map[string]float64) []string { return slices.Sorted(maps.Keys(of)) }
