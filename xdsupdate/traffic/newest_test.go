// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// hostsOfRoutes says what becomes of the requests to the hosts of a route configuration:
// "served", or "500".
func hostsOfRoutes(t *testing.T, st *state, p *proxy, name string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	rc, _ := st.routes(p, name)
	for _, h := range rc.GetVirtualHosts() {
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
	for name, limits := range map[string]Limits{
		"bytes": {SharedBytes: 10 * 1000}, "virtual hosts": {VirtualHosts: 10},
	} {
		for _, seed := range []uint64{1, 2, 3} {
			order := rand.New(rand.NewPCG(seed, 3)).Perm(all)
			state := func(without int) *state {
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
				return newState(newIndex(configs, newSettings(Options{Limits: limits})), cartWorld())
			}
			full, less := state(-1), state(0)
			for client, p := range map[string]*proxy{"http.80": edge(), "80": {namespace: "shop"}} {
				got := hostsOfRoutes(t, full, p, client)
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
				got = hostsOfRoutes(t, less, p, client)
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
	build := func() (*state, []string) {
		st := newState(newIndex(configs, newSettings(Options{Limits: Limits{SharedBytes: 1000}})), cartWorld())
		rc, _ := st.routes(edge(), "http.80")
		var out []string
		for _, h := range rc.GetVirtualHosts() {
			out = append(out, fmt.Sprint(h))
		}
		return st, out
	}
	_, want := build()
	configs.add(istio.VirtualService, "shop/new", toCart("/"+strings.Repeat("x", 1000), []string{"ingress/a"}, "a.com", "b.com"))
	st, got := build()
	if len(got) != len(want)+1 || got[0] != want[0] {
		t.Errorf("%q\nwithout it %q", got, want)
	}
	if of := hostsOfRoutes(t, st, edge(), "http.80"); of["a.com"] != "served" || of["b.com"] != "500" {
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
	var configs configList
	object := func(kind, key, text string) {
		m := &multiplying{tb: t, configs: configs}
		m.object(kind, key, text)
		configs = m.configs
	}
	object("DestinationRule", "shop/r", `{"host":"*.example.com","subsets":[{"name":"v1"},{"name":"v2"}]}`)
	object("Sidecar", "shop/s", `{"egress":[{"port":{"number":80,"name":"a","protocol":"HTTP"},"hosts":["*/s9.example.com"]},{"hosts":["*/*"]}]}`)
	st := newState(newIndex(configs, newSettings(Options{Limits: Limits{Clusters: 8, Imports: 6}})), newNamedWorld(services...))
	var subsets []string
	for _, name := range st.clusterNames(&proxy{namespace: "other"}) {
		if _, subset, host, _ := envoy.ParseSubsetClusterName(name); subset == "v2" {
			subsets = append(subsets, string(host))
		}
	}
	if want := []string{"s6.example.com", "s7.example.com", "s8.example.com", "s9.example.com"}; !slices.Equal(subsets, want) {
		t.Errorf("subsets of %v, want %v", subsets, want)
	}
	if got := describe(st.scopeOf(&proxy{namespace: "shop"}).egress[1].services); got != "shop/s5.example.com 80\nshop/s6.example.com 80\nshop/s7.example.com 80\nshop/s8.example.com 80\nshop/s9.example.com 80\n" {
		t.Errorf("imported:\n%s", got)
	}
	policy := spec(t, `{"host":"*.example.com","trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"`+strings.Repeat("x", 200)+`","subjectAltNames":["`+strings.Repeat("x", 400)+`"]}}}`, schemaSpec(t, "DestinationRule"))
	configs = nil
	configs.add(istio.DestinationRule, "shop/r", policy)
	st = newState(newIndex(configs, newSettings(Options{Limits: Limits{RepeatedBytes: 4 * proto.Size(policy)}})), newNamedWorld(services...))
	for i := range 10 {
		name := fmt.Sprintf("outbound|80||s%d.example.com", i)
		c, err := st.checkedCluster(&proxy{namespace: "other"}, name)
		if fits := i >= 6; (c != nil) != fits || (err == nil) != fits {
			t.Errorf("%s: cluster %t, %v", name, c != nil, err)
		}
	}
}

func schemaSpec(t *testing.T, kind string) proto.Message {
	t.Helper()
	for _, schema := range istio.Schemas().All() {
		if schema.GroupVersionKind.Kind == kind {
			return schema.NewSpec()
		}
	}
	t.Fatal(kind)
	return nil
}

// TestLargeMesh: what a large mesh has is far from all limits: 10,000 VirtualServices on
// one port of a gateway, and 10,000 services of which one VirtualService and one
// DestinationRule are about all.
func TestLargeMesh(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*"), serverOf(15443, "TLS", "auto", "*.local")))
	var services []*registry.Service
	for i := range n {
		host := registry.Hostname(fmt.Sprintf("s%d.shop.svc.cluster.local", i))
		services = append(services, testService("shop", host, 80, 81))
		configs.add(istio.VirtualService, fmt.Sprintf("shop/v%d", i), toCart("/", []string{"ingress/a"}, fmt.Sprintf("h%d.example.com", i)))
	}
	m := &multiplying{tb: t, configs: configs}
	m.object("VirtualService", "shop/all", `{"hosts":["*.shop.svc.cluster.local"],"http":[{"retries":{"attempts":3},"route":[{"destination":{"host":"cart"}}]}]}`)
	m.object("DestinationRule", "shop/all", `{"host":"*.shop.svc.cluster.local","trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`)
	m.object("Sidecar", "other/all", `{"egress":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*/*"]},{"port":{"number":81,"name":"http","protocol":"HTTP"},"hosts":["*/*"]},{"hosts":["*/*"]}]}`)
	st := newState(newIndex(m.configs, newSettings(Options{})), newNamedWorld(services...))
	for name, p := range map[string]*proxy{"http.80": edge(), "80": {namespace: "shop"}, "81": {namespace: "other"}} {
		rc, err := st.routes(p, name)
		if len(err) > 0 || len(rc.GetVirtualHosts()) < n {
			t.Errorf("%s: %d virtual hosts, %v", name, len(rc.GetVirtualHosts()), err)
		}
		t.Logf("%s: %d bytes", name, proto.Size(rc))
	}
	l, err := st.listener(edge(), "0.0.0.0_15443")
	if len(err) > 0 || len(l.GetFilterChains()) != 2*n {
		t.Errorf("%d filter chains, %v", len(l.GetFilterChains()), err)
	}
}
