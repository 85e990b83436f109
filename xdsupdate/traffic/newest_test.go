// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// hostsOfRoutes says what becomes of the requests to the hosts of a route configuration:
// "served", or "500".
func hostsOfRoutes(s *scene, n *core.Node, name string) map[string]string {
	s.t.Helper()
	out := make(map[string]string)
	for _, h := range s.routes(n, name).GetVirtualHosts() {
		for _, d := range h.GetDomains() {
			if out[d] = "served"; h.GetRoutes()[0].GetDirectResponse().GetStatus() == 500 {
				out[d] = "500"
			}
		}
	}
	return out
}

// TestNewestLoses: of VirtualServices that share a route configuration the oldest are
// served, in whatever order they come, and those that are equally old by their names. One
// more changes nothing of the others; when one goes, there is room for the next.
func TestNewestLoses(t *testing.T) {
	const all = 20
	host := func(i int) string { return fmt.Sprintf("h%02d.example.com", i) }
	for name, limits := range map[string]traffic.Limits{
		"bytes": {SharedBytes: 10 * 1000}, "virtual hosts": {VirtualHosts: 10},
	} {
		for _, seed := range []uint64{1, 2, 3} {
			order := rand.New(rand.NewPCG(seed, 3)).Perm(all)
			build := func(without int) *scene {
				var configs configList
				configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
				for _, i := range order {
					if i == without {
						continue
					}
					configs.add(istio.VirtualService, fmt.Sprintf("shop/v%02d", i), toCart("/"+strings.Repeat("x", 500), []string{"mesh", "ingress/a"}, host(i)))
					configs[len(configs)-1].CreationTimestamp = time.Unix(int64(i/2), 0)
					if i%3 == 2 { // these come first in the order of precedence
						configs[len(configs)-1].Spec.(*networking.VirtualService).ExportTo = []string{"shop", "ingress"}
					}
				}
				return stage(t, traffic.Options{Limits: limits}, configs, cartPopulation())
			}
			full, less := build(-1), build(0)
			for client, n := range map[string]*core.Node{"http.80": edge(), "80": in("sidecar", "shop")} {
				got := hostsOfRoutes(full, n, client)
				served := 0
				for i := range all {
					if got[host(i)] != "served" {
						break
					}
					served++
				}
				if served < 8 || served > 12 {
					t.Fatalf("%s, %s: %d are served: %v", name, client, served, got)
				}
				for i := served; i < all; i++ {
					if got[host(i)] != "500" {
						t.Errorf("%s, %s: %s is %q, and an older one is not served", name, client, host(i), got[host(i)])
					}
				}
				got = hostsOfRoutes(less, n, client)
				if got[host(served)] != "served" || got[host(served+1)] != "500" {
					t.Errorf("%s, %s: when one goes, %s is %q and the next %q", name, client, host(served), got[host(served)], got[host(served+1)])
				}
			}
		}
	}
}

// TestOverlapping: a VirtualService that there is no room for takes nothing from those
// with the same hosts: requests are answered as without it, and with 500 where there are
// no others.
func TestOverlapping(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "a.com", "b.com")))
	configs.add(istio.VirtualService, "shop/old", toCart("/old", []string{"ingress/a"}, "a.com"))
	build := func() (*scene, []string) {
		s := stage(t, traffic.Options{Limits: traffic.Limits{SharedBytes: 1000}}, configs, cartPopulation())
		var out []string
		for _, h := range s.routes(edge(), "http.80").GetVirtualHosts() {
			out = append(out, fmt.Sprint(h))
		}
		return s, out
	}
	_, want := build()
	configs.add(istio.VirtualService, "shop/new", toCart("/"+strings.Repeat("x", 1000), []string{"ingress/a"}, "a.com", "b.com"))
	s, got := build()
	if len(got) != len(want)+1 || got[0] != want[0] {
		t.Errorf("%q\nwithout it %q", got, want)
	}
	if of := hostsOfRoutes(s, edge(), "http.80"); of["a.com"] != "served" || of["b.com"] != "500" {
		t.Errorf("%v", of)
	}
}

// TestOldServicesFirst: a DestinationRule for a wildcard has clusters for its subsets, and
// its policy in clusters, for the oldest services, and the services that an egress listener
// imports are the oldest.
func TestOldServicesFirst(t *testing.T) {
	var services []*registry.Service
	for i := range 10 {
		s := testService("shop", registry.Hostname(fmt.Sprintf("s%d.example.com", 9-i)), 80)
		s.CreationTime = time.Unix(int64(i), 0)
		services = append(services, s)
	}
	s := stage(t, traffic.Options{Limits: traffic.Limits{Clusters: 8, Imports: 6}}, objectsOf(t,
		`DestinationRule shop/r {"host":"*.example.com","subsets":[{"name":"v1"},{"name":"v2"}]}`,
		`Sidecar shop/s {"egress":[{"port":{"number":80,"name":"a","protocol":"HTTP"},"hosts":["*/s9.example.com"]},{"hosts":["*/*"]}]}`,
	), populate(services...))
	hosts := func(namespace, subset string) string {
		var out []string
		for _, name := range s.ask(in("sidecar", namespace), envoy.ClusterType).names {
			if _, of, host, ok := envoy.ParseSubsetClusterName(name); ok && of == subset {
				out = append(out, strings.TrimSuffix(string(host), ".example.com"))
			}
		}
		return strings.Join(out, " ")
	}
	if got, want := hosts("other", "v2"), "s6 s7 s8 s9"; got != want {
		t.Errorf("subsets of %s, want %s", got, want)
	}
	if got, want := hosts("shop", ""), "s5 s6 s7 s8 s9"; got != want {
		t.Errorf("%s are imported, want %s", got, want)
	}
	policies := objectsOf(t, `DestinationRule shop/r {"host":"*.example.com","trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"`+strings.Repeat("x", 200)+`","subjectAltNames":["`+strings.Repeat("x", 400)+`"]}}}`)
	s = stage(t, traffic.Options{Limits: traffic.Limits{RepeatedBytes: 4 * proto.Size(policies[0].Spec)}}, policies, populate(services...))
	got := s.ask(in("sidecar", "other"), envoy.ClusterType)
	for i := range 10 {
		name := fmt.Sprintf("outbound|80||s%d.example.com", i)
		if fits := i >= 6; (got.resources[name] != nil) != fits || (got.failed[name] == "") != fits {
			t.Errorf("%s: cluster %t, %v", name, got.resources[name] != nil, got.failed[name])
		}
	}
}

// TestLargeMesh: what a large mesh has is far from all limits: 10,000 VirtualServices on
// one port of a gateway, and 10,000 services of which one VirtualService and one
// DestinationRule are about all.
func TestLargeMesh(t *testing.T) {
	many := tier.Share(10_000)
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*"), serverOf(15443, "TLS", "auto", "*.local")))
	var services []*registry.Service
	for i := range many {
		host := registry.Hostname(fmt.Sprintf("s%d.shop.svc.cluster.local", i))
		services = append(services, testService("shop", host, 80, 81))
		configs.add(istio.VirtualService, fmt.Sprintf("shop/v%d", i), toCart("/", []string{"ingress/a"}, fmt.Sprintf("h%d.example.com", i)))
	}
	configs = append(configs, objectsOf(t,
		`VirtualService shop/all {"hosts":["*.shop.svc.cluster.local"],"http":[{"retries":{"attempts":3},"route":[{"destination":{"host":"cart"}}]}]}`,
		`DestinationRule shop/all {"host":"*.shop.svc.cluster.local","trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`,
		`Sidecar other/all {"egress":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*/*"]},{"port":{"number":81,"name":"http","protocol":"HTTP"},"hosts":["*/*"]},{"hosts":["*/*"]}]}`,
	)...)
	s := stage(t, traffic.Options{}, configs, populate(services...))
	for name, n := range map[string]*core.Node{"http.80": edge(), "80": in("sidecar", "shop"), "81": in("sidecar", "other")} {
		rc, failed := s.routesAndFailure(n, name)
		if failed != "" || len(rc.GetVirtualHosts()) < many {
			t.Errorf("%s: %d virtual hosts, %v", name, len(rc.GetVirtualHosts()), failed)
		}
		t.Logf("%s: %d bytes", name, proto.Size(rc))
	}
	got := s.ask(edge(), envoy.ListenerType, "0.0.0.0_15443")
	if l, _ := got.resources["0.0.0.0_15443"].(*listenerv3.Listener); len(got.failed) > 0 || len(l.GetFilterChains()) != 2*many {
		t.Errorf("%d filter chains, %v", len(l.GetFilterChains()), got.failed)
	}
}
