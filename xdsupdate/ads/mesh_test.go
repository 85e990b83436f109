// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// mesh is some registries with services, united and served, and one client that
// follows the endpoints of one service.
type mesh struct {
	tb         testing.TB
	registries []*memory.Registry
	hosts      []registry.Hostname
	f          *fixture
	client     *rawClient
	everything chan time.Duration // how long each push of everything took
	calls      callTimes
	// apart is a registry that is not served, apartCalls are its calls.
	apart      *memory.Registry
	apartCalls callTimes
}

// meshDebounce is how long a push of a mesh waits for other requests.
const meshDebounce = time.Millisecond

// callTimes has the longest call of a registry.
type callTimes struct{ longest, count atomic.Int64 }

func (c *callTimes) note(took time.Duration) {
	c.count.Inc()
	for now := c.longest.Load(); int64(took) > now && !c.longest.CompareAndSwap(now, int64(took)); now = c.longest.Load() {
	}
}

// pushTimes is an observer that records pushes of everything.
type pushTimes struct {
	ads.Observer
	everything chan time.Duration
}

func (p pushTimes) Pushed(e ads.PushEvent) {
	if e.Request.Everything() {
		p.everything <- e.Took
	}
}

// newMesh has n services, spread over some registries, with five endpoints each.
func newMesh(tb testing.TB, n, registries int) *mesh {
	tb.Helper()
	m := &mesh{tb: tb, everything: make(chan time.Duration, 1000), apart: memory.New(memory.Options{})}
	services := aggregate.NewController()
	server := ads.New(services, ads.Options{
		Observer: pushTimes{ads.NoObserver{}, m.everything},
		Debounce: xdsupdate.Debounce{After: meshDebounce, EndpointInterval: 10 * time.Millisecond},
	})
	for i := range registries {
		services.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			r := memory.New(memory.Options{Updater: updater, Cluster: registry.ClusterID(fmt.Sprint("c", i))})
			m.registries = append(m.registries, r)
			return r
		})
	}
	for i := range n {
		host := registry.Hostname(fmt.Sprintf("service-%05d.example.com", i))
		m.hosts = append(m.hosts, host)
		m.define(m.of(i), i)
	}
	m.define(m.apart, 0)
	m.f = serveServer(tb, server)
	return m
}

// define adds a service to a registry, with its endpoints.
func (m *mesh) define(r *memory.Registry, i int) {
	m.tb.Helper()
	if err := r.SetService(service(string(m.hosts[i]), "shop")); err != nil {
		m.tb.Fatal(err)
	}
	if err := r.SetEndpoints(m.hosts[i], "shop", ownEndpoints(i, 0)); err != nil {
		m.tb.Fatal(err)
	}
}

// ownEndpoints are benchEndpoints with addresses that no other service has.
func ownEndpoints(i, version int) []*registry.Endpoint {
	out := benchEndpoints(version)
	for j, e := range out {
		e.Addresses[0] = fmt.Sprintf("10.%d.%d.%d", i>>8, i&255, j)
	}
	out[0].EndpointPort += uint32(version % 1000)
	return out
}

// of returns the registry of a service.
func (m *mesh) of(i int) *memory.Registry { return m.registries[i%len(m.registries)] }

// connect connects the client.
func (m *mesh) connect(b *testing.B) {
	b.Helper()
	m.client = &rawClient{
		stream: dialRaw(b, m.f.address(), deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType,
		names: []string{cluster(string(m.hosts[0]))},
	}
	m.client.subscribe(b, 1)
}

// move changes an endpoint of a service, and notes how long that takes.
func (m *mesh) move(i, version int) { m.moveIn(m.of(i), i, version, &m.calls) }

func (m *mesh) moveIn(r *memory.Registry, i, version int, calls *callTimes) {
	begun := time.Now()
	if err := r.SetEndpoints(m.hosts[i], "shop", ownEndpoints(i, version)); err != nil {
		m.tb.Error(err)
	}
	calls.note(time.Since(begun))
}

// churn changes one endpoint of each registry every millisecond, except those of the first service,
// until stop is called.
func (m *mesh) churn() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	everyMillisecond := func(change func(version int)) {
		wg.Go(func() {
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for version := 1; ctx.Err() == nil; version++ {
				change(version)
				<-ticker.C
			}
		})
	}
	for r := range m.registries {
		i := r
		everyMillisecond(func(version int) {
			if i += len(m.registries); i >= len(m.hosts) {
				i = r + len(m.registries)
			}
			m.move(i, version)
		})
	}
	everyMillisecond(func(version int) { m.moveIn(m.apart, 0, version, &m.apartCalls) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// askForEverything asks for a push of everything; everything receives when it is done.
func (m *mesh) askForEverything() {
	for len(m.everything) > 0 {
		<-m.everything
	}
	m.f.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: true})
}

// pushEverything returns how long a push of everything takes, the debounce included.
func (m *mesh) pushEverything() time.Duration {
	begun := time.Now()
	m.askForEverything()
	<-m.everything
	return time.Since(begun)
}

// quietWork returns how long a push of everything takes by itself.
func (m *mesh) quietWork() time.Duration {
	least := time.Hour
	for range 20 {
		m.askForEverything()
		least = min(least, <-m.everything)
	}
	return least
}

// follow changes endpoints of the first service, until stop is called, and returns how
// long the client waited for each.
func (m *mesh) follow() (stop func() []time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var out []time.Duration
	wg.Go(func() {
		for version := 1; ctx.Err() == nil; version++ {
			begun := time.Now()
			m.move(0, version)
			m.client.receive(m.tb)
			out = append(out, time.Since(begun))
		}
	})
	return func() []time.Duration {
		cancel()
		wg.Wait()
		slices.Sort(out)
		return out
	}
}
