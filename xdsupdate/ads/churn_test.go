// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// churnWorld is 1,000 services that change at random.
type churnWorld struct {
	f         *fixture
	sockets   bool // the network is a real one
	random    *rand.Rand
	hosts     []string
	services  map[string]*registry.Service
	endpoints map[string][]*registry.Endpoint
	steps     int
	streams   int // that were opened again
}

func newChurnWorld(tb testing.TB, sockets bool) *churnWorld {
	tb.Helper()
	w := &churnWorld{
		sockets: sockets,
		f:       serve(tb, ads.Options{}), random: rand.New(rand.NewPCG(1, 2)),
		services: make(map[string]*registry.Service), endpoints: make(map[string][]*registry.Endpoint),
	}
	if sockets {
		w.f.address()
	}
	for i := range 1000 {
		host := fmt.Sprintf("h%03d.example.com", i)
		w.hosts = append(w.hosts, host)
		w.services[host] = service(host, "shop")
		w.endpoints[host] = w.someEndpoints()
		w.f.EDSCacheUpdate(shard, registry.Hostname(host), "shop", w.endpoints[host])
	}
	w.f.services.set(w.list()...)
	w.f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	w.f.flush()
	return w
}

func (w *churnWorld) list() []*registry.Service {
	var out []*registry.Service
	for _, host := range w.hosts {
		if s := w.services[host]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

func (w *churnWorld) someEndpoints() []*registry.Endpoint {
	var out []*registry.Endpoint
	for range w.random.IntN(5) {
		e := endpoint(fmt.Sprintf("10.0.%d.%d", w.random.IntN(250), w.random.IntN(250)), 80)
		e.HealthStatus = registry.HealthStatus(w.random.IntN(3))
		out = append(out, e)
	}
	return slices.SortedFunc(slices.Values(out), registry.CompareEndpoints)
}

// step changes one service, mostly its endpoints.
func (w *churnWorld) step() {
	host := w.hosts[w.random.IntN(len(w.hosts))]
	switch w.random.IntN(20) {
	case 0: // gone, or back
		if w.services[host] == nil {
			w.services[host] = service(host, "shop")
			w.f.define([]string{host}, w.list()...)
			return
		}
		delete(w.services, host)
		delete(w.endpoints, host)
		w.f.SvcUpdate(shard, registry.Hostname(host), "shop", registry.EventDelete)
		w.f.define([]string{host}, w.list()...)
	case 1: // defined in another way: hidden, shown, by name, by address
		if w.services[host] == nil {
			return
		}
		w.services[host] = service(host, "shop", func(s *registry.Service) {
			s.Resolution = []registry.Resolution{registry.ClientSideLB, registry.ClientSideLB, registry.DNSLB}[w.random.IntN(3)]
			s.Attributes.ExportTo = [][]registry.Visibility{nil, nil, {"elsewhere"}}[w.random.IntN(3)]
		})
		w.f.define([]string{host}, w.list()...)
	default:
		if w.services[host] != nil {
			w.endpoints[host] = w.someEndpoints()
			w.f.eds(host, "shop", w.endpoints[host]...)
		}
	}
}

// churn changes the world as long as more returns true, while clients of a fleet answer late, lose
// their streams, or restart.
func (w *churnWorld) churn(fleet []*member, more func() bool) {
	for ; more(); w.steps++ {
		w.step()
		m := fleet[w.random.IntN(len(fleet))]
		switch {
		case m.manner == slow && w.steps%2 == 0:
			m.answerOnce()
		case m.manner == reconnecting && w.steps%5 == 0:
			m.reconnect()
			w.streams++
		case m.manner != dead && w.steps%50 == 0:
			m.disconnect()
			m.peace.Store(false)
			m.connect(false)
			w.streams++
		}
		if w.random.IntN(20) == 0 {
			w.f.flush()
		}
	}
}

// finish lets all clients of the fleet answer, and returns when they have all present resources.
func (w *churnWorld) finish(t *testing.T, fleet []*member) {
	t.Helper()
	calm(fleet)
	ctx, cancel := context.WithTimeout(context.Background(), churnPatience)
	defer cancel()
	if err := w.f.WaitApplied(ctx, nil); err != nil {
		t.Fatal(err)
	}
}

// churnPatience bounds every wait of churn and soak.
const churnPatience = 60 * time.Second

// poll returns when a condition is true.
func poll(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	if !wait(churnPatience, condition) {
		tb.Fatalf("waited for %s", what)
	}
}

// wait returns whether a condition has become true. It checks the condition less and less often, so
// that a bubble, where waiting takes no time, is not busy with checks.
func wait(most time.Duration, condition func() bool) bool {
	late := time.After(most)
	for pause := 5 * time.Millisecond; !condition(); pause = min(2*pause, 2*time.Second) {
		select {
		case <-time.After(pause):
		case <-late:
			return condition()
		}
	}
	return true
}

// TestChurn: 100 clients, some of them slow, dead, rejecting or reconnecting, of 1,000 services
// that change all the time: in the end each has the resources that a client of a fresh server gets.
func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newChurnWorld(t, false)
		fleet := newFleet(w.f, w.hosts, w.random)
		join(fleet)
		t.Cleanup(func() { leave(t, w.f, fleet) })
		w.churn(fleet, func() bool { return w.steps < tier.Share(1000) })
		w.finish(t, fleet)
		equalsFresh(t, w, fleet)
	})
}
