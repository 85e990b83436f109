// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// panicking is a Metrics in an observer of the host that panics occasionally, before or after it
// calls the Metrics.
type panicking struct {
	*prometheus.Metrics
	panics func() bool
}

func (p *panicking) then() {
	if p.panics() {
		panic("of an observer")
	}
}

func (p *panicking) StreamOpened(s ads.Stream) {
	p.Metrics.StreamOpened(s)
	p.then()
}

func (p *panicking) StreamClosed(s ads.Stream, err error) {
	p.Metrics.StreamClosed(s, err)
	p.then()
}

func (p *panicking) StreamRefused(s ads.Stream, err error) {
	p.then()
	p.Metrics.StreamRefused(s, err)
}

func (p *panicking) Request(s ads.Stream, r ads.RequestEvent) {
	p.then()
	p.Metrics.Request(s, r)
}

// TestGauges: in any order of opens, refusals, panics and stops the gauges equal the number of
// connected proxies, and are 0 in the end.
func TestGauges(t *testing.T) {
	for _, seed := range histories.Seeds(t, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { gaugesModel(t, seed) })
		})
	}
}

func gaugesModel(t *testing.T, seed uint64) {
	t.Helper()
	random, ofHost := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex // guards the inputs of the host's functions
	in := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return ofHost.IntN(n) == 0
	}
	metrics := prometheus.New()
	f := serve(t, ads.Options{
		Observer: &panicking{metrics, func() bool { return in(8) }},
		Limits:   ads.Limits{Streams: 6, StreamsPerNode: 3},
		Proxy: func(_ context.Context, node *core.Node) (*registry.Proxy, error) {
			time.Sleep(time.Duration(len(node.GetId())) * time.Millisecond)
			switch {
			case in(8):
				panic("of Options.Proxy")
			case in(6):
				return nil, status.Error(codes.PermissionDenied, "no")
			}
			return ads.ProxyOf(node), nil
		},
	}, "a")
	all := registered(t, metrics, prometheus.NewServerCollector(f.Server))
	var clients []*xdstest.Client
	stopped := false
	for range 60 {
		switch n := random.IntN(12); {
		case n < 5:
			options := xdstest.ClientOptions{Delta: in(2), Node: node(fmt.Sprint("c", random.IntN(4)))}
			if in(3) {
				options.Answer = func(xdstest.Response) error { return fmt.Errorf("refused by %d", seed) }
			}
			c := xdstest.NewClient(f.dial(), options)
			if c.Connect(f.context()) == nil {
				if !in(5) { // a client without requests
					_ = c.Subscribe(envoy.ClusterType)
				}
				clients = append(clients, c)
			}
		case n < 8 && len(clients) > 0:
			i := random.IntN(len(clients))
			clients[i].Close()
			clients = append(clients[:i], clients[i+1:]...)
		case n == 8:
			f.ReviewProxies(nil)
		case n == 9:
			f.set("b", fmt.Sprint("10.0.0.", 1+random.IntN(200)))
		case n == 10:
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
		case n == 11 && in(8) && !stopped:
			stopped = true
			f.stopNow()
		}
		if in(3) {
			scrape(t, all) // at any time
		}
	}
	time.Sleep(time.Second) // all identities are known
	synctest.Wait()
	check(t, "connected", connected(scrape(t, all)), float64(len(f.Proxies())))
	for _, c := range clients {
		c.Close()
	}
	f.stopNow()
	synctest.Wait()
	last := scrape(t, all)
	check(t, "connected in the end", connected(last), 0)
	opened, closed := 0.0, 0.0
	for name, value := range last {
		switch {
		case strings.HasPrefix(name, "pilotkit_xds_streams_opened_total"):
			opened += value
		case strings.HasPrefix(name, "pilotkit_xds_streams_closed_total"):
			closed += value
		case strings.HasPrefix(name, "pilotkit_xds_connected"), strings.HasPrefix(name, "pilotkit_xds_") && strings.Contains(name, "subscriptions{"),
			strings.HasPrefix(name, "pilotkit_xds_") && strings.Contains(name, "_resources{"):
			check(t, name+" in the end", value, 0)
		}
	}
	check(t, "streams that have ended", closed, opened)
}

// connected returns the number of connected proxies.
func connected(of map[string]float64) float64 {
	return of[`pilotkit_xds_connected_proxies{protocol="sotw"}`] + of[`pilotkit_xds_connected_proxies{protocol="delta"}`]
}
