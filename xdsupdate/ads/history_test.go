// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// world is a random state of services and endpoints over few names.
type world struct {
	random    *rand.Rand
	services  map[string]*registry.Service       // by namespace and host
	endpoints map[[2]string][]*registry.Endpoint // by host and namespace
}

func newWorld(seed, stream uint64) *world {
	return &world{rand.New(rand.NewPCG(seed, stream)), make(map[string]*registry.Service), make(map[[2]string][]*registry.Endpoint)}
}

// again starts a second server of the present state, which shares nothing with the first one.
func (w *world) again(t *testing.T) *fixture {
	t.Helper()
	f := serve(t, ads.Options{}, w.list()...)
	for at, list := range w.endpoints {
		f.eds(at[0], at[1], list...)
	}
	f.flush()
	return f
}

func (w *world) list() []*registry.Service {
	var out []*registry.Service
	for _, s := range w.services {
		out = append(out, s)
	}
	return out
}

func (w *world) step(f *fixture) {
	host, namespace := fmt.Sprintf("h%d", w.random.IntN(4)), fmt.Sprintf("n%d", w.random.IntN(3))
	key := namespace + "/" + host
	switch w.random.IntN(5) {
	case 0, 1:
		var list []*registry.Endpoint
		for range w.random.IntN(4) {
			e := endpoint(fmt.Sprintf("10.0.0.%d", w.random.IntN(4)), 80)
			e.HealthStatus = registry.HealthStatus(w.random.IntN(5))
			e.Shared = &registry.EndpointAttributes{
				Locality: []string{"", "r/z", "r/y/s"}[w.random.IntN(3)], LbWeight: uint32(w.random.IntN(3)),
			}
			list = append(list, e)
		}
		w.endpoints[[2]string{host, namespace}] = list
		f.eds(host, namespace, list...)
	case 2:
		delete(w.services, key)
		delete(w.endpoints, [2]string{host, namespace})
		f.SvcUpdate(shard, registry.Hostname(host), namespace, registry.EventDelete)
		f.define([]string{host}, w.list()...)
	default:
		w.services[key] = service(host, namespace, func(s *registry.Service) {
			s.Resolution = []registry.Resolution{registry.ClientSideLB, registry.ClientSideLB, registry.DNSLB, registry.Passthrough}[w.random.IntN(4)]
			s.Ports = slices.Clone(s.Ports)
			if w.random.IntN(2) == 0 {
				s.Ports = append(s.Ports, &registry.Port{Name: "http", Number: uint32(81 + w.random.IntN(2)), Protocol: registry.ProtocolHTTP})
			}
			switch w.random.IntN(4) {
			case 0:
				s.Attributes.ExportTo = []registry.Visibility{registry.VisibilityPrivate}
			case 1:
				s.Attributes.ExportTo = []registry.Visibility{"n1"}
			}
		})
		f.define([]string{host}, w.list()...)
	}
}

// add defines services at once that no step changes.
func (w *world) add(f *fixture, many int) {
	var hosts []string
	for i := range many {
		host := fmt.Sprintf("many-%d", i)
		w.services["n0/"+host] = service(host, "n0")
		hosts = append(hosts, host)
	}
	f.UpdateBatch(func(u xdsupdate.XDSUpdater) {
		for i, host := range hosts {
			list := []*registry.Endpoint{endpoint(fmt.Sprintf("10.1.%d.%d", i/250, i%250), 80)}
			w.endpoints[[2]string{host, "n0"}] = list
			u.EDSUpdate(shard, registry.Hostname(host), "n0", list)
		}
	})
	f.define(hosts, w.list()...)
}

// subscribeAll asks for everything that can exist in a world, in any order.
func (f *fixture) subscribeAll(c *xdstest.Client, shuffle func(int, func(int, int))) {
	var names, listeners []string
	for i := range 4 {
		host := registry.Hostname(fmt.Sprintf("h%d", i))
		for port := uint32(80); port < 83; port++ {
			names = append(names, envoy.ClusterName(port, host))
			listeners = append(listeners, envoy.ListenerName(port, host))
		}
	}
	steps := []func(){
		func() { f.subscribe(c, envoy.ClusterType) },
		func() { f.subscribe(c, envoy.LoadAssignmentType, names...) },
		func() { f.subscribe(c, envoy.ListenerType, listeners...) },
		func() { f.subscribe(c, envoy.RouteType, append([]string{"80", "81", "82"}, names...)...) },
	}
	shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
}

// TestRandomHistories compares clients that saw a whole history with clients that come to its end,
// and with clients of another server, because clients of one server share what it keeps.
func TestRandomHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playHistory(t, seed, 0, 150) })
	}
}

// TestHistoryAfterLargeBatch is TestRandomHistories after many services at once, which the clients
// have.
func TestHistoryAfterLargeBatch(t *testing.T) {
	t.Run("300", func(t *testing.T) { playHistory(t, 300, 300, 60) })
	t.Run("5000", func(t *testing.T) {
		tier.OnlyFull(t, "a large batch")
		playHistory(t, 5000, 5000, 60)
	})
}

func playHistory(t *testing.T, seed uint64, many, steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		w := newWorld(seed, 1)
		var clients []*xdstest.Client
		var options []xdstest.ClientOptions
		for i := range 6 {
			o := xdstest.ClientOptions{Delta: i%2 == 0, Node: node("a", fmt.Sprintf("n%d", i/2))}
			if i >= 4 {
				o.Node.UserAgentName = "gRPC Go"
			}
			c := f.client(o)
			f.subscribeAll(c, w.random.Shuffle)
			clients, options = append(clients, c), append(options, o)
		}
		if many > 0 {
			w.add(f, many)
			f.waitApplied()
			if got := len(clients[0].State().Resources(envoy.ClusterType)); got != many {
				t.Fatalf("%d clusters, want %d", got, many)
			}
		}
		for i := range steps {
			w.step(f)
			if w.random.IntN(8) == 0 {
				f.waitApplied()
			}
			if i%40 == 39 {
				j := w.random.IntN(len(clients))
				if err := clients[j].Connect(f.context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
		f.waitApplied()
		other := w.again(t)
		for i, c := range clients {
			for what, of := range map[string]*fixture{"": f, " of another server": other} {
				fresh := of.client(options[i])
				of.subscribeAll(fresh, func(int, func(int, int)) {})
				f.compare(fmt.Sprintf("client %d%s", i, what), c, fresh, i >= 4)
			}
		}
	})
}

// compare waits until a new client has the same resources as another one. A gRPC client that has
// seen removals has kept listeners and clusters; it has no endpoints for them.
func (f *fixture) compare(what string, old, fresh *xdstest.Client, grpc bool) {
	f.t.Helper()
	if err := old.Err(); err != nil {
		f.t.Fatalf("%s: stream ended: %v", what, err)
	}
	all := contents(f.t, old.State())
	var got, want map[string]any
	err := fresh.Await(f.context(), func(s xdstest.State) bool {
		got = contents(f.t, s)
		want = maps.Clone(all)
		if grpc {
			maps.DeleteFunc(want, func(key string, _ any) bool { return got[key] == nil && !strings.HasPrefix(key, "EDS") })
		}
		return cmp.Equal(got, want, protocmp.Transform())
	})
	if err != nil {
		f.t.Errorf("%s: %v (-long connected +new):\n%s", what, err, cmp.Diff(want, got, protocmp.Transform()))
	}
}

// contents decodes a state. Load assignments without endpoints, or without a cluster that uses
// them, and routes without a listener are left out, because SotW cannot remove them.
func contents(tb testing.TB, s xdstest.State) map[string]any {
	tb.Helper()
	out, assigned := make(map[string]any), make(map[string]bool)
	for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType} {
		for name, r := range s.Resources(typeURL) {
			m, err := r.Message()
			if err != nil {
				tb.Fatal(err)
			}
			switch m := m.(type) {
			case *clusterv3.Cluster:
				assigned[m.GetName()] = m.GetType() == clusterv3.Cluster_EDS
			case *endpointv3.ClusterLoadAssignment:
				if len(m.GetEndpoints()) == 0 || !assigned[name] {
					continue
				}
			}
			out[short(typeURL)+" "+name] = m
		}
	}
	return out
}
