// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"iter"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// slow is a provider that holds up each push for a minute.
type slow struct{}

func (slow) Name() string { return "slow" }

func (slow) Attach(xdsupdate.XDSUpdater) {}

func (slow) Group(*core.Node, *registry.Proxy) any { return nil }

func (slow) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	time.Sleep(time.Minute)
	return nothing{}, ads.Changes{}
}

// nothing is a provider without resources.
type nothing struct{}

func (nothing) Names(ads.View, string) (iter.Seq[string], bool) { return nil, false }

func (nothing) Covers(ads.View, string, string) (covered, only bool) { return false, false }

func (nothing) Lookup(ads.View, string, string) ads.Answer { return ads.Answer{Next: true} }

// TestRunningPush: how long the push has been running that is.
func TestRunningPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{Providers: []ads.Provider{slow{}}}, "a")
		all := registered(t, prometheus.NewServerCollector(f.Server))
		time.Sleep(time.Hour)
		const running = "pilotkit_push_running_seconds"
		series(t, "idle", scrape(t, all), map[string]float64{running: 0})
		f.set("b", "10.0.0.1")
		time.Sleep(20 * time.Second)
		series(t, "running", scrape(t, all), map[string]float64{running: 20})
		time.Sleep(time.Hour)
		series(t, "idle again", scrape(t, all), map[string]float64{running: 0})
	})
}

// TestQueue: the metrics of pending pushes, their age, and the duration of a running push.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := ads.New(aggregate.NewController(), ads.Options{Debounce: xdsupdate.Debounce{After: time.Hour, Max: 2 * time.Hour}})
		all := registered(t, prometheus.NewServerCollector(server))
		const requests, wait = `pilotkit_push_queue_requests{kind="full"}`, `pilotkit_push_queue_wait_seconds{kind="full"}`
		nothing := map[string]float64{
			requests: 0, wait: 0, "pilotkit_push_running_seconds": 0, "pilotkit_push_failures_total": 0,
			`pilotkit_push_queue_requests{kind="endpoints"}`: 0, `pilotkit_push_queue_wait_seconds{kind="endpoints"}`: 0,
		}
		series(t, "at first", scrape(t, all), nothing)
		for range 3 {
			server.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Start: time.Now(), Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1}})
			time.Sleep(time.Minute)
		}
		series(t, "three minutes later", scrape(t, all), map[string]float64{requests: 3, wait: 180})
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			server.Run(stop)
		}()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		series(t, "pushed", scrape(t, all), nothing)
		close(stop)
		<-ended
	})
}
