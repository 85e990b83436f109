// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// TestSimulationIsEnvoy: package routesim reads the routes of random meshes as real
// Envoys do, request by request. So what the other simulations show of our routes
// holds for Envoys.
func TestSimulationIsEnvoy(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			m := &measurement{t: t, backend: startMirror(t)}
			for _, seed := range histories.Seeds(t, 90) {
				m.addSidecars(seed)
				m.addGateways(seed)
			}
			m.proxy = envoyproxy.Start(t, envoyproxy.Options{Program: program, Listeners: m.listeners, Clusters: m.clusters()})
			m.proxy.AwaitReady()
			at, outcomes := m.proxy.Listeners(), make(map[string]int)
			for i, c := range m.cases {
				for _, r := range c.requests {
					if ambiguous(c.routes, r) {
						continue
					}
					want := routesim.Envoy(c.routes, r)
					if difference := m.compare(at[fmt.Sprint(i)], r, want); difference != "" {
						t.Fatalf("%s, request %+v: %s\n%s", c.about, r, difference, protojson.Format(c.routes))
					}
					outcomes[outcomeKind(want)]++
				}
			}
			t.Log(outcomes)
		})
	}
}

func outcomeKind(o routesim.Outcome) string {
	switch {
	case o.Location != "":
		return "redirect"
	case o.Status != 0:
		return fmt.Sprint("status ", o.Status)
	case len(o.Targets) > 1:
		return "weights"
	default:
		return "forward"
	}
}

// ambiguous reports whether a request goes to one cluster in several ways: the answer
// does not tell which.
func ambiguous(routes *routev3.RouteConfiguration, r routesim.Request) bool {
	_, route := routesim.Choose(routes, r)
	seen := make(map[string]bool)
	for _, w := range route.GetRoute().GetWeightedClusters().GetClusters() {
		if seen[w.GetName()] {
			return true
		}
		seen[w.GetName()] = true
	}
	return false
}

// measurement is one Envoy with the routes of many meshes, a listener for each
// configuration.
type measurement struct {
	t         *testing.T
	proxy     *envoyproxy.Proxy
	backend   string
	cases     []measured
	listeners []*listenerv3.Listener
}

// measured is a route configuration and the requests for it.
type measured struct {
	about    string
	routes   *routev3.RouteConfiguration
	requests []routesim.Request
}

func (m *measurement) addSidecars(seed uint64) {
	s := newSimulation(seed + 4_000_000)
	s.sidecars(s.mesh())
	client := in("sidecar", pick(s.Rand, simNamespaces), "app="+pick(s.Rand, []string{"web", "job"}))
	m.addAll(fmt.Sprintf("sidecars of mesh %d", seed), s, client, "")
}

func (m *measurement) addGateways(seed uint64) {
	s := newSimulation(seed + 5_000_000)
	s.gateways(s.mesh())
	m.addAll(fmt.Sprintf("gateways of mesh %d", seed), s, in("router", pick(s.Rand, simNamespaces), "app=edge"), "http.")
}

// addAll adds what a client is sent for the ports of meshes.
func (m *measurement) addAll(about string, s *simulation, client *core.Node, prefix string) {
	m.t.Helper()
	plane := s.stage(m.t)
	defer plane.close()
	configs := plane.routeConfigs(client, portNames(prefix)...)
	for _, port := range simPorts {
		m.add(about, s, port, configs[fmt.Sprint(prefix, port)])
	}
}

// add adds a route configuration, if there is one, and requests for it: by the names
// that meshes have, and by its own domains.
func (m *measurement) add(about string, s *simulation, port uint32, routes *routev3.RouteConfiguration) {
	m.t.Helper()
	if len(routes.GetVirtualHosts()) == 0 {
		return
	}
	c := measured{about: about, routes: routes}
	var domains []string
	for _, vh := range routes.GetVirtualHosts() {
		domains = append(domains, vh.GetDomains()...)
	}
	for range 12 {
		r := s.request()
		r.Port = port
		if d := pick(s.Rand, append(domains, "*")); s.chance(50) && d != "*" {
			r.Authority = spelled(s, d)
		}
		c.requests = append(c.requests, r)
	}
	m.listeners = append(m.listeners, m.listener(fmt.Sprint(len(m.cases)), routes))
	m.cases = append(m.cases, c)
}

// spelled returns a host of a domain as some client writes it.
func spelled(s *simulation, domain string) string {
	if domain[0] == '*' {
		domain = "X" + domain[1:]
	}
	return domain + pick(s.Rand, []string{"", "", ":80", ":443", ":8080"})
}

// clusterHeader is the header of answers by which the Envoy names the cluster.
const clusterHeader = "x-cluster"

// listener serves a route configuration on a free port. It has no filter for faults,
// which are random.
func (m *measurement) listener(name string, routes *routev3.RouteConfiguration) *listenerv3.Listener {
	m.t.Helper()
	routes = proto.CloneOf(routes)
	routes.ResponseHeadersToAdd = append(routes.ResponseHeadersToAdd, &core.HeaderValueOption{
		Header: &core.HeaderValue{Key: clusterHeader, Value: "%UPSTREAM_CLUSTER_RAW%"},
	})
	manager := &hcm.HttpConnectionManager{
		StatPrefix: name, RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: routes},
		HttpFilters: []*hcm.HttpFilter{{Name: "router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: m.pack(&routerv3.Router{})}}},
	}
	return &listenerv3.Listener{Name: name, Address: envoyproxy.Address("127.0.0.1", 0), FilterChains: []*listenerv3.FilterChain{{
		Filters: []*listenerv3.Filter{{Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: m.pack(manager)}}},
	}}}
}

func (m *measurement) pack(message proto.Message) *anypb.Any {
	m.t.Helper()
	out, err := anypb.New(message)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// clusters are all that the routes lead to; all of them are the backend.
func (m *measurement) clusters() []*clusterv3.Cluster {
	m.t.Helper()
	var names []string
	for _, c := range m.cases {
		for _, vh := range c.routes.GetVirtualHosts() {
			for _, r := range vh.GetRoutes() {
				names = append(names, r.GetRoute().GetCluster())
				for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
					names = append(names, w.GetName())
				}
				for _, mirror := range r.GetRoute().GetRequestMirrorPolicies() {
					names = append(names, mirror.GetCluster())
				}
			}
		}
	}
	slices.Sort(names)
	var out []*clusterv3.Cluster
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue
		}
		c, err := envoyproxy.HTTP2Cluster(name, m.backend)
		if err != nil {
			m.t.Fatal(err)
		}
		c.TypedExtensionProtocolOptions = nil // HTTP/1.1
		out = append(out, c)
	}
	return out
}
