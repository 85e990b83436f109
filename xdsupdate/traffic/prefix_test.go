// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// prefixPlane is a control plane with fixed services, a sidecar and a router, all in one
// bubble.
type prefixPlane struct {
	t       *testing.T
	server  *ads.Server
	clients []*xdstest.Client
	stop    func()
}

// prefixHosts are the services, each with an endpoint of version v1 and one of v2.
var prefixHosts = []string{"cart.shop.svc.cluster.local", "orders.shop.svc.cluster.local"}

// startPrefixPlane starts a control plane on a cache, which it runs.
func startPrefixPlane(t *testing.T, configs configstore.ConfigStoreCache) *prefixPlane {
	t.Helper()
	p := &prefixPlane{t: t}
	services := registrymemory.New()
	p.server = ads.New(services, ads.Options{Providers: []ads.Provider{traffic.New(configs)}})
	for _, host := range prefixHosts {
		p.must(services.SetService(&registry.Service{
			Hostname: registry.Hostname(host), DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(1, 0),
			Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
			Attributes: registry.ServiceAttributes{Namespace: "shop"},
		}))
		var endpoints []*registry.Endpoint
		for i, version := range []string{"v1", "v2"} {
			e := endpoint(fmt.Sprintf("10.0.%d.1", i), 8080, "http", "")
			e.Shared.Labels = registry.Labels{"version": version}
			endpoints = append(endpoints, e)
		}
		p.server.EDSUpdate(xdsupdate.ShardKey{}, registry.Hostname(host), "shop", endpoints)
	}
	server := grpc.NewServer()
	p.server.Register(server)
	conn, end := testserver.ServeMemory(t, server, configs.Run, p.server.Run)
	p.connect(conn, "sidecar", "80", "15001")
	p.connect(conn, "router", "http.80", "http.81")
	p.stop = func() {
		for _, c := range p.clients {
			c.Close()
		}
		end()
	}
	return p
}

func (p *prefixPlane) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// connect starts a client of everything, with route configurations by their names.
func (p *prefixPlane) connect(conn *grpc.ClientConn, kind string, routes ...string) {
	p.t.Helper()
	var assignments []string
	for _, host := range prefixHosts {
		for _, subset := range []string{"", "v1", "v2"} {
			assignments = append(assignments, envoy.SubsetClusterName(80, subset, registry.Hostname(host)))
		}
	}
	c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: node(kind, "NAMESPACE", "shop"), Delta: true})
	p.must(c.Connect(p.t.Context()))
	p.must(c.Subscribe(envoy.ClusterType, "*"))
	p.must(c.Subscribe(envoy.LoadAssignmentType, assignments...))
	if kind == "router" {
		p.must(c.Subscribe(envoy.ListenerType, "*"))
	}
	p.must(c.Subscribe(envoy.RouteType, routes...))
	p.clients = append(p.clients, c)
}

// sent returns what the clients have been sent, when nothing is on its way to them.
func (p *prefixPlane) sent() string {
	p.t.Helper()
	synctest.Wait()
	var b strings.Builder
	for i, c := range p.clients {
		p.must(c.Err())
		state := c.State()
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
			resources := state.Resources(typeURL)
			for _, name := range slices.Sorted(maps.Keys(resources)) {
				fmt.Fprintf(&b, "%d %s %x\n", i, name, resources[name].Any.GetValue())
			}
		}
	}
	return b.String()
}

// prefixStores are stores with the histories of their batches.
type prefixStores struct {
	stores []*storememory.Controller
	// contents are those of each store after each of its batches.
	contents [][][]*configstore.Config
	// sent are what clients are sent for numbers of batches.
	sent map[string]string
}

func newPrefixStores(n int) *prefixStores {
	s := &prefixStores{sent: make(map[string]string)}
	for range n {
		s.stores = append(s.stores, storememory.NewController(storememory.Make(istio.Schemas())))
		s.contents = append(s.contents, [][]*configstore.Config{nil})
	}
	return s
}

// apply writes a batch to a store.
func (s *prefixStores) apply(t *testing.T, store int, batch []configstore.Mutation) {
	t.Helper()
	if _, err := s.stores[store].Apply(batch...); err != nil {
		t.Fatal(err)
	}
	var now []*configstore.Config
	for _, schema := range istio.Schemas().All() {
		now = append(now, s.stores[store].List(schema.GroupVersionKind, configstore.NamespaceAll)...)
	}
	s.contents[store] = append(s.contents[store], now)
}

// scratch returns what clients of a new control plane are sent that has some batches of
// each store. Of objects with the same key that of the first store counts.
func (s *prefixStores) scratch(t *testing.T, batches []int) string {
	t.Helper()
	key := fmt.Sprint(batches)
	if sent, made := s.sent[key]; made {
		return sent
	}
	store := storememory.NewController(storememory.Make(istio.Schemas()))
	for i, n := range batches {
		for _, c := range s.contents[i][n] {
			if store.Get(c.GroupVersionKind, c.Name, c.Namespace) == nil {
				if _, err := store.Create(c.Clone()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	p := startPrefixPlane(t, store)
	defer p.stop()
	time.Sleep(time.Minute) // of the bubble
	s.sent[key] = p.sent()
	return s.sent[key]
}

// find returns the numbers of batches, not less than those of last, of which clients are
// sent something.
func (s *prefixStores) find(t *testing.T, sent string, last []int) (batches []int, found bool) {
	t.Helper()
	var search func(batches []int) bool
	search = func(chosen []int) bool {
		if i := len(chosen); i < len(last) {
			for n := last[i]; n < len(s.contents[i]); n++ {
				if search(append(slices.Clip(chosen), n)) {
					return true
				}
			}
			return false
		}
		batches = chosen
		return s.scratch(t, chosen) == sent
	}
	return batches, search(nil)
}

// randomBatch returns changes of objects of all kinds, some of which it deletes.
func randomBatch(t *testing.T, r *rand.Rand, store configstore.Reader) []configstore.Mutation {
	t.Helper()
	host := prefixHosts[r.IntN(2)]
	name, _, _ := strings.Cut(host, ".")
	objects := []string{
		fmt.Sprintf(`{kind: VirtualService, metadata: {name: %s}, spec: {hosts: [%s], gateways: [mesh, edge],
			http: [{match: [{uri: {prefix: /%d}}], route: [{destination: {host: %s, subset: v%d}}]}]}}`,
			name, host, r.IntN(1000), host, 1+r.IntN(2)),
		fmt.Sprintf(`{kind: DestinationRule, metadata: {name: %s}, spec: {host: %s, subsets: [{name: v%d, labels: {version: v%d}}],
			trafficPolicy: {connectionPool: {tcp: {maxConnections: %d}}}}}`,
			name, host, 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(1000)),
		fmt.Sprintf(`{kind: Gateway, metadata: {name: edge}, spec: {selector: {app: edge},
			servers: [{port: {number: %d, name: http, protocol: HTTP}, hosts: ["%s"]}]}}`,
			80+r.IntN(2), []string{"*", host}[r.IntN(2)]),
		fmt.Sprintf(`{kind: Sidecar, metadata: {name: default}, spec: {egress: [{hosts: ["*/%s"]}]}}`, []string{"*", host}[r.IntN(2)]),
	}
	var out []configstore.Mutation
	for len(out) == 0 {
		for _, text := range objects {
			c := parseConfig(t, text)
			switch exists := store.Get(c.GroupVersionKind, c.Name, c.Namespace) != nil; {
			case r.IntN(3) == 0:
			case exists && r.IntN(4) == 0:
				out = append(out, configstore.Mutation{Op: configstore.OpDelete, Config: c})
			default:
				out = append(out, configstore.Mutation{Op: configstore.OpUpsert, Config: c})
			}
		}
	}
	return out
}

// parseConfig returns an object of networking.istio.io/v1 in the namespace shop.
func parseConfig(tb testing.TB, text string) configstore.Config {
	tb.Helper()
	data := strings.Replace(text, "{", "{apiVersion: networking.istio.io/v1, ", 1)
	configs, err := manifest.ParseAll(istio.Schemas(), []byte(data), manifest.Options{DefaultNamespace: "shop"})
	if err != nil {
		tb.Fatal(err)
	}
	return configs[0]
}

// cachesOf are the ways to wire stores.
func cachesOf(stores []*storememory.Controller) configstore.ConfigStoreCache {
	if len(stores) == 1 {
		return stores[0]
	}
	var caches []configstore.ConfigStoreCache
	for _, s := range stores {
		caches = append(caches, s)
	}
	return aggregate.MakeCache(caches...)
}

// delay registers a handler of the program that takes some time for each event.
func delay(cache configstore.ConfigStoreCache, took func() time.Duration) {
	for _, kind := range []configstore.GroupVersionKind{istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar} {
		cache.RegisterEventHandler(kind, func(_, _ configstore.Config, _ configstore.Event) { time.Sleep(took()) })
	}
}

// TestClientsHavePrefixes: whenever nothing is on its way, clients have been sent what a
// new control plane would send that has the first batches of each store, whatever
// handlers of the program do, and never fewer of them than before. In the end they have all.
func TestClientsHavePrefixes(t *testing.T) {
	const steps = 25
	for _, n := range []int{1, 2, 3} {
		for _, seed := range histories.Seeds(t, 5) {
			t.Run(fmt.Sprintf("stores=%d/%d", n, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stores := newPrefixStores(n)
					playPrefixes(t, stores, cachesOf(stores.stores), steps, rand.New(rand.NewPCG(seed, uint64(n))))
				})
			})
		}
	}
}

// TestCachesOfHosts: of a cache that has only single events, clients have all in the end.
func TestCachesOfHosts(t *testing.T) {
	for _, seed := range histories.Seeds(t, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stores := newPrefixStores(1)
				cache := struct{ configstore.ConfigStoreCache }{stores.stores[0]}
				playPrefixes(t, stores, cache, 25, rand.New(rand.NewPCG(seed, 9)))
			})
		})
	}
}

func playPrefixes(t *testing.T, stores *prefixStores, cache configstore.ConfigStoreCache, steps int, r *rand.Rand) {
	t.Helper()
	n := len(stores.stores)
	for range r.IntN(3) { // before the policies are made
		at := r.IntN(n)
		stores.apply(t, at, randomBatch(t, r, stores.stores[at]))
	}
	var mu sync.Mutex
	took := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(r.IntN(4)*r.IntN(4)) * 50 * time.Millisecond
	}
	delay(cache, took)
	for _, s := range stores.stores[1:] {
		delay(s, took)
	}
	p := startPrefixPlane(t, cache)
	defer p.stop()
	_, batched := cache.(configstore.Subscriber)
	if !batched {
		time.Sleep(time.Minute) // what is replayed comes
	}
	time.Sleep(100 * time.Millisecond) // the first push waits for what is being handed out
	batches := make([]int, n)
	check := func(when string) {
		t.Helper()
		found, ok := stores.find(t, p.sent(), batches)
		if !ok {
			t.Fatalf("%s: clients have not what any numbers of batches from %v on give", when, batches)
		}
		batches = found
	}
	for step := range steps {
		mu.Lock()
		at, batch, push, pause := r.IntN(n), r.IntN(3) > 0, r.IntN(2) == 0, time.Duration(r.IntN(300))*time.Millisecond
		mu.Unlock()
		if batch {
			mu.Lock()
			mutations := randomBatch(t, r, stores.stores[at])
			mu.Unlock()
			stores.apply(t, at, mutations)
		}
		if push {
			p.server.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: step%2 == 0})
		}
		time.Sleep(pause)
		if batched {
			check(fmt.Sprintf("step %d", step))
		}
	}
	time.Sleep(time.Hour)
	if p.sent() != stores.scratch(t, lastOf(stores.contents)) {
		t.Error("in the end clients do not have all")
	}
}

func lastOf(contents [][][]*configstore.Config) (out []int) {
	for _, c := range contents {
		out = append(out, len(c)-1)
	}
	return out
}

// TestBatchBehindASlowHandler: a route to a subset that is written with the subset comes
// with its cluster, also to a push that was asked for before, while a handler of the
// host still holds the events back.
func TestBatchBehindASlowHandler(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("stores=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stores := newPrefixStores(n)
				cache := cachesOf(stores.stores)
				var slow atomic.Duration
				delay(cache, slow.Load)
				host := prefixHosts[0]
				route := func(path, subset string) configstore.Mutation {
					return configstore.Mutation{Op: configstore.OpUpsert, Config: parseConfig(t, fmt.Sprintf(
						`{kind: VirtualService, metadata: {name: cart}, spec: {hosts: [%s], http: [{match: [{uri: {prefix: %s}}], route: [{destination: {host: %s, subset: "%s"}}]}]}}`,
						host, path, host, subset))}
				}
				stores.apply(t, 0, []configstore.Mutation{route("/a", "")})
				p := startPrefixPlane(t, cache)
				defer p.stop()
				time.Sleep(time.Second)
				synctest.Wait()
				// The event of the first is delivered; those of the second are held back when the push
				// of the first comes.
				stores.apply(t, 0, []configstore.Mutation{route("/b", "")})
				time.Sleep(50 * time.Millisecond)
				slow.Store(500 * time.Millisecond)
				stores.apply(t, 0, []configstore.Mutation{route("/b", "v2"), {Op: configstore.OpUpsert, Config: parseConfig(t,
					`{kind: DestinationRule, metadata: {name: cart}, spec: {host: `+host+`, subsets: [{name: v2, labels: {version: v2}}]}}`)}})
				cluster, arrived := envoy.SubsetClusterName(80, "v2", registry.Hostname(host)), time.Duration(0)
				for at := time.Duration(0); at < 3*time.Second; at += 5 * time.Millisecond {
					synctest.Wait()
					state := p.clients[0].State()
					routed := strings.Contains(string(state.Resources(envoy.RouteType)["80"].Any.GetValue()), cluster)
					if routed && !state.Has(envoy.ClusterType, cluster) {
						t.Fatalf("after %v the route leads to %s, which the client does not have", at, cluster)
					}
					if routed && arrived == 0 {
						arrived = at
					}
					time.Sleep(5 * time.Millisecond)
				}
				if arrived == 0 {
					t.Error("the route has not come")
				}
			})
		})
	}
}
