// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestSpellingsOfBinds: servers whose binds are one address in several spellings have
// one listener and one route configuration, which have the canonical spelling.
func TestSpellingsOfBinds(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		addresses  []string
		want       []string
	}{
		{
			"IPv6", "::1", "0:0:0:0:0:0:0:1", nil,
			[]string{"::1_80: HTTP", "http.80.::1: a.com />" + cartCluster, "http.80.::1: b.com />" + cartCluster},
		},
		{
			"the first is the longer", "2001:DB8:0::0:1", "2001:db8::1", nil,
			[]string{"2001:db8::1_80: HTTP", "http.80.2001:db8::1: a.com />" + cartCluster, "http.80.2001:db8::1: b.com />" + cartCluster},
		},
		{
			"IPv4 as IPv6", "::ffff:10.9.0.3", "10.9.0.3", nil,
			[]string{"10.9.0.3_80: HTTP", "http.80.10.9.0.3: a.com />" + cartCluster, "http.80.10.9.0.3: b.com />" + cartCluster},
		},
		{
			"the wildcard address of IPv6", "", "0:0:0:0:0:0:0:0",
			[]string{"FD00:0::3"},
			[]string{"::_80: HTTP", "http.80: a.com />" + cartCluster, "http.80: b.com />" + cartCluster},
		},
		{
			"two addresses", "::1", "::2", nil,
			[]string{"::1_80: HTTP", "::2_80: HTTP", "http.80.::1: a.com />" + cartCluster, "http.80.::2: b.com />" + cartCluster},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configs configList
			configs.add(istio.Gateway, "ingress/a", gatewayOf(bound(tc.a, serverOf(80, "HTTP", "", "a.com"))))
			configs.add(istio.Gateway, "ingress/b", gatewayOf(bound(tc.b, serverOf(80, "HTTP", "", "b.com"))))
			configs.add(istio.VirtualService, "shop/v", toCart("/", []string{"ingress/a", "ingress/b"}, "a.com", "b.com"))
			st, p := newState(newIndex(configs, newSettings(Options{})), cartWorld()), edge()
			if tc.addresses != nil {
				p.addresses = familiesOf(tc.addresses)
			}
			if diff := cmp.Diff(tc.want, describeRouter(t, st, p)); diff != "" {
				t.Errorf("router (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpellingsOfBindsConcern: a change reaches the listeners and routes of a server
// whose bind is not in the canonical spelling.
func TestSpellingsOfBindsConcern(t *testing.T) {
	for _, protocol := range []string{"HTTP", "TCP"} {
		var configs, changed configList
		configs.add(istio.Gateway, "ingress/a", gatewayOf(bound("0::0:1", serverOf(80, protocol, "", "*"))))
		configs.add(istio.VirtualService, "shop/v", toCart("/a", []string{"ingress/a"}, "a.com"))
		changed.add(istio.VirtualService, "shop/v", toCart("/b", []string{"ingress/a"}, "a.com"))
		x, w := newIndex(configs, newSettings(Options{})), newListWorld()
		before, _ := x.objects.Get(changed[0].Key())
		after := newObject(changed[0], x.settings)
		d := &difference{before: newState(x, w), targets: &targets{}, objects: []objectChange{{changed[0].Key(), before, after}}}
		d.after = d.before.next(x.with(changed[0].Key(), before, after), w, d)
		key := resourceKey{envoy.RouteType, "http.80.::1"}
		if protocol == "TCP" {
			key = resourceKey{envoy.ListenerType, "::1_80"}
		}
		v := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}
		if !named(newConcerned(d).changes(), v, key) {
			t.Errorf("%s is not concerned", key.name)
		}
	}
}

// TestSpellingsOfTargets: a router is reached by the endpoint at its address, however
// both spell it.
func TestSpellingsOfTargets(t *testing.T) {
	svc := testService("ingress", "edge.example.com", 80)
	for _, address := range []string{"2001:db8::1", "2001:DB8:0:0::1"} {
		for _, own := range []string{"2001:db8::1", "2001:0db8::0001"} {
			w := newListWorld(svc)
			w.index.UpdateServiceEndpoints(xdsupdate.ShardKey{}, svc.Hostname, "ingress", []*registry.Endpoint{{
				Addresses: []string{address}, EndpointPort: 8080, ServicePort: 80, ServicePortName: svc.Ports[0].Name,
			}})
			x := &targets{world: w}
			if got := x.of([]string{own}); got != "80=8080" {
				t.Errorf("endpoint %s, router %s: listens on %q, want 80=8080", address, own, got)
			}
		}
	}
}

// TestSpellingsOfServiceAddresses: services whose addresses are one in two spellings do
// not both have it as a domain.
func TestSpellingsOfServiceAddresses(t *testing.T) {
	a, b := testService("shop", "a.example.com", 80), testService("shop", "b.example.com", 80)
	for _, tc := range []struct{ a, b, domain string }{
		{"2001:db8::1", "2001:DB8::0:1", "[2001:db8::1]"},
		{"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"},
		{"::ffff:10.0.0.1", "::FFFF:0A00:0001", "10.0.0.1"},
	} {
		a.DefaultAddress, b.DefaultAddress = tc.a, tc.b
		st := newState(newIndex(configList{}, newSettings(Options{})), newListWorld(a, b))
		want := map[string][]string{
			"a.example.com:80": {"a.example.com", "a.example.com.", tc.domain},
			"b.example.com:80": {"b.example.com", "b.example.com."}, "allow_any": {"*"},
		}
		got := make(map[string][]string)
		for _, h := range st.routesSent(&proxy{namespace: "shop"}, "80").GetVirtualHosts() {
			got[h.GetName()] = h.GetDomains()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s and %s (-want +got):\n%s", tc.a, tc.b, diff)
		}
	}
	a.DefaultAddress, b.DefaultAddress = "::ffff:0.0.0.0", "0:0::0"
	for _, svc := range []*registry.Service{a, b} {
		if got := addressesOf(newService([]*registry.Service{svc}), &proxy{}); len(got) > 0 {
			t.Errorf("%s is no address that can be called: %q", svc.DefaultAddress, got)
		}
	}
}

// TestSpellingsOfHosts: a host of a VirtualService that is an address is compared as
// one, and requests have it in brackets.
func TestSpellingsOfHosts(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*"), serverOf(81, "HTTP", "", "2001:DB8:0::1")))
	configs.add(istio.VirtualService, "shop/first", toCart("/a", []string{"mesh", "ingress/a"}, "2001:db8::1"))
	configs.add(istio.VirtualService, "shop/second", toCart("/b", []string{"mesh", "ingress/a"}, "2001:DB8:0:0::1", "10.0.0.1"))
	st := newState(newIndex(configs, newSettings(Options{Mesh: &meshconfig.MeshConfig{}})), cartWorld())
	want := []string{
		"0.0.0.0_80: HTTP", "0.0.0.0_81: HTTP",
		"http.80: [2001:db8::1] /a>" + cartCluster + " /b>" + cartCluster, "http.80: 10.0.0.1 /b>" + cartCluster,
		"http.81: [2001:db8::1] /a>" + cartCluster + " /b>" + cartCluster,
	}
	if diff := cmp.Diff(want, describeRouter(t, st, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
	domains := make(map[string]int)
	for _, h := range st.routesSent(&proxy{namespace: "shop"}, "80").GetVirtualHosts() {
		for _, d := range h.GetDomains() {
			domains[d]++
		}
	}
	if domains["[2001:db8::1]"] != 1 || domains["10.0.0.1"] != 1 {
		t.Errorf("the domains of a sidecar are %v", domains)
	}
}
