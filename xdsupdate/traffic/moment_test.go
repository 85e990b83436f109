// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestPolicyComesWithItsService: a push that is asked for while a cache hands a commit to
// the policies, then to a handler of the program that takes its time, then to the registry,
// has the route of the commit with its service, and the former one goes after that.
func TestPolicyComesWithItsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMove(t, xdsupdate.Debounce{After: -1}, 20*time.Millisecond)
		m.connect()
		m.commit()
		go m.store.Drain()
		time.Sleep(10 * time.Millisecond)
		m.must(m.server.Flush(t.Context()))
		time.Sleep(time.Second)
		m.check()
	})
}

// TestPolicyComesWithItsServiceAfterAnyTime: the handler of the program takes a minute, in which
// pushes are made.
func TestPolicyComesWithItsServiceAfterAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMove(t, xdsupdate.Debounce{After: -1}, time.Minute)
		m.connect()
		m.commit()
		go m.store.Drain()
		for range 100 {
			time.Sleep(time.Second)
			m.server.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: true})
		}
		m.must(m.server.Flush(t.Context()))
		time.Sleep(time.Second)
		m.check()
	})
}

// TestPolicyWaitsForItsService: endpoints of a service that goes have changed just before.
// The push of these, which comes before the quiet time of the commit has passed, has not
// only the route of it.
func TestPolicyWaitsForItsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMove(t, xdsupdate.Debounce{After: 100 * time.Millisecond}, 0)
		m.connect()
		for _, address := range []string{"10.0.0.2", "10.0.0.3"} { // the second waits for the interval of endpoints
			m.apply(m.set(m.entry("old", address)))
			m.store.Drain()
			synctest.Wait()
		}
		m.commit()
		m.store.Drain()
		time.Sleep(time.Second)
		m.check()
	})
}

// TestPolicyComesWithItsServiceUnderChurn: the cache hands out commits without an end.
func TestPolicyComesWithItsServiceUnderChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMove(t, xdsupdate.Debounce{After: -1}, time.Millisecond)
		m.connect()
		var n atomic.Int64
		var stopped atomic.Bool
		m.store.Subscribe([]configstore.GroupVersionKind{istio.ServiceEntry}, func([]configstore.Change) {
			if i := n.Inc(); !stopped.Load() {
				m.apply(m.set(m.entry("busy", fmt.Sprintf("10.0.1.%d", i%200))))
			}
		})
		m.apply(m.set(m.entry("busy", "10.0.1.255")))
		go m.store.Drain()
		time.Sleep(100 * time.Millisecond)
		m.since = len(m.c.Responses())
		m.commit()
		time.Sleep(time.Second)
		stopped.Store(true)
		time.Sleep(time.Second)
		if n := n.Load(); n < 500 {
			t.Errorf("%d commits in a second", n)
		}
		m.check()
	})
}

// TestFirstPushHasWhatWasDelivered: a program serves before its caches have synced. The
// first push has neither the route nor the services of a commit that is yet to be
// delivered, and the next one has both.
func TestFirstPushHasWhatWasDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMove(t, xdsupdate.Debounce{After: -1}, 0)
		m.commit()
		m.connect()
		first := m.c.Responses()
		want := []string{envoy.ClusterName(80, "old.example.com")}
		if got := slices.Compact(clustersOf(t, first[len(first)-1])); !slices.Equal(got, want) {
			t.Errorf("the first push has routes to %q, want %q", got, want)
		}
		m.check()
	})
}

// move is a scene in which a route moves from a service to a new one.
type move struct {
	*scene
	c     *xdstest.Client
	since int // how many responses there were before
}

// newMove has a handler of the program between the policies and the registry that takes some
// time for each commit.
func newMove(t *testing.T, o xdsupdate.Debounce, slow time.Duration) *move {
	t.Helper()
	m := &move{scene: &scene{t: t, store: storememory.NewController(storememory.Make(istio.Schemas())), clusterID: "c1"}}
	m.policies = traffic.New(m.store, traffic.Options{})
	registries := aggregate.NewController()
	m.kubernetes = registrymemory.New()
	m.server = ads.New(registries, ads.Options{Providers: []ads.Provider{m.policies}, Debounce: o})
	m.store.Subscribe([]configstore.GroupVersionKind{istio.ServiceEntry}, func([]configstore.Change) { time.Sleep(slow) })
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(m.store, updater, serviceentry.Options{ClusterID: m.clusterID})
	})
	m.apply(m.set(m.entry("web", "10.0.0.1")), m.set(m.entry("old", "10.0.0.1")), m.set(m.route("old")))
	m.store.Drain()
	return m
}

// connect serves, and connects a client.
func (m *move) connect() {
	m.t.Helper()
	m.serve()
	m.c = xdstest.NewClient(m.conn, xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~10.1.1.1~a.shop~shop.svc.cluster.local"}})
	m.must(m.c.Connect(m.t.Context()))
	m.t.Cleanup(m.c.Close)
	m.must(m.c.Subscribe(envoy.ClusterType))
	time.Sleep(time.Second)
	m.must(m.c.Subscribe(envoy.RouteType, "80"))
	time.Sleep(time.Second)
	m.since = len(m.c.Responses())
}

func (m *move) entry(name, address string) configstore.Config {
	return parseConfig(m.t, `{kind: ServiceEntry, metadata: {name: `+name+`}, spec: {hosts: [`+name+`.example.com], resolution: STATIC,
		ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: `+address+`}]}}`)
}

func (m *move) route(to string) configstore.Config {
	return parseConfig(m.t, `{kind: VirtualService, metadata: {name: web}, spec: {hosts: [web.example.com],
		http: [{route: [{destination: {host: `+to+`.example.com}}]}]}}`)
}

func (*move) set(c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: configstore.OpUpsert, Config: c}
}

func (m *move) apply(mutations ...configstore.Mutation) {
	m.t.Helper()
	_, err := m.store.Apply(mutations...)
	m.must(err)
}

// commit commits that the route leads to a new service and the old one is gone.
func (m *move) commit() {
	m.t.Helper()
	gone := configstore.Mutation{Op: configstore.OpDelete, Config: m.entry("old", "10.0.0.1")}
	m.apply(m.set(m.entry("new", "10.0.0.1")), m.set(m.route("new")), gone)
}

// check fails the test if there was a route that leads to no cluster of the client, or to
// the old one, or more than one response with routes.
func (m *move) check() {
	m.t.Helper()
	m.applied()
	routes := 0
	var clusters []string
	for i, r := range m.c.Responses() {
		switch {
		case r.TypeURL == envoy.ClusterType:
			clusters = r.Names()
		case i < m.since || r.TypeURL != envoy.RouteType:
		default:
			routes++
			for _, name := range clustersOf(m.t, r) {
				if name == envoy.ClusterName(80, "old.example.com") || !slices.Contains(clusters, name) {
					m.t.Errorf("response %d has a route to %s, and there are the clusters %q", i, name, clusters)
				}
			}
		}
	}
	if routes != 1 {
		m.t.Errorf("%d responses with routes, want 1", routes)
	}
}

// clustersOf returns the clusters that the routes of a response lead to.
func clustersOf(tb testing.TB, r xdstest.Response) (out []string) {
	tb.Helper()
	for _, resource := range r.Resources {
		m, err := resource.Message()
		if err != nil {
			tb.Fatal(err)
		}
		config, _ := m.(*routev3.RouteConfiguration)
		for _, host := range config.GetVirtualHosts() {
			for _, route := range host.GetRoutes() {
				if name := route.GetRoute().GetCluster(); name != "" && name != "PassthroughCluster" {
					out = append(out, name)
				}
			}
		}
	}
	return out
}
