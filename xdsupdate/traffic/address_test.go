// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestSpellingsOfBinds: servers whose binds are one address in several spellings have
// one listener and one route configuration, which have the canonical spelling.
func TestSpellingsOfBinds(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		address    string
		want       []string
	}{
		{
			"IPv6", "::1", "0:0:0:0:0:0:0:1", "",
			[]string{"::1_80: HTTP", "http.80.::1: a.com />" + cartOutbound, "http.80.::1: b.com />" + cartOutbound},
		},
		{
			"the first is the longer", "2001:DB8:0::0:1", "2001:db8::1", "",
			[]string{"2001:db8::1_80: HTTP", "http.80.2001:db8::1: a.com />" + cartOutbound, "http.80.2001:db8::1: b.com />" + cartOutbound},
		},
		{
			"IPv4 as IPv6", "::ffff:10.9.0.3", "10.9.0.3", "",
			[]string{"10.9.0.3_80: HTTP", "http.80.10.9.0.3: a.com />" + cartOutbound, "http.80.10.9.0.3: b.com />" + cartOutbound},
		},
		{
			"the wildcard address of IPv6", "", "0:0:0:0:0:0:0:0",
			"FD00:0::3",
			[]string{"::_80: HTTP", "http.80: a.com />" + cartOutbound, "http.80: b.com />" + cartOutbound},
		},
		{
			"two addresses", "::1", "::2", "",
			[]string{"::1_80: HTTP", "::2_80: HTTP", "http.80.::1: a.com />" + cartOutbound, "http.80.::2: b.com />" + cartOutbound},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configs configList
			configs.add(istio.Gateway, "ingress/a", gatewayOf(bound(tc.a, serverOf(80, "HTTP", "", "a.com"))))
			configs.add(istio.Gateway, "ingress/b", gatewayOf(bound(tc.b, serverOf(80, "HTTP", "", "b.com"))))
			configs.add(istio.VirtualService, "shop/v", toCart("/", []string{"ingress/a", "ingress/b"}, "a.com", "b.com"))
			n := edge()
			if tc.address != "" {
				n = at(n, tc.address)
			}
			if diff := cmp.Diff(tc.want, describeRouter(stage(t, traffic.Options{}, configs, cartPopulation()), n)); diff != "" {
				t.Errorf("router (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpellingsOfBindsFollow: a change reaches the listeners and routes of a server whose
// bind is not in the canonical spelling.
func TestSpellingsOfBindsFollow(t *testing.T) {
	for protocol, want := range map[string][]string{
		"HTTP": {"::1_80: HTTP", "http.80.::1: a.com /b>" + cartOutbound}, "TCP": {"::1_80: outbound|80||catalog.shop.svc.cluster.local"},
	} {
		var configs configList
		configs.add(istio.Gateway, "ingress/a", gatewayOf(bound("0::0:1", serverOf(80, protocol, "", "*"))))
		to := func(path, host string) *networking.VirtualService {
			v := toCart(path, []string{"ingress/a"}, "a.com")
			v.Tcp = []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: host}}}}}
			return v
		}
		configs.add(istio.VirtualService, "shop/v", to("/a", "cart"))
		s := stage(t, traffic.Options{}, configs, cartPopulation())
		listeners, routes := s.follow(edge(), envoy.ListenerType), s.follow(edge(), envoy.RouteType)
		configs[1].Spec = to("/b", "catalog")
		s.change(configs[1:])
		if diff := cmp.Diff(want, describeResources(t, listeners.has(), routes.has())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", protocol, diff)
		}
	}
}

// TestSpellingsOfTargets: a router is reached by the endpoint at its address, however
// both spell it.
func TestSpellingsOfTargets(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
	for _, address := range []string{"2001:db8::1", "2001:DB8:0:0::1"} {
		before := testService("ingress", "edge.example.com", 80)
		services := populate(before)
		services.place(before, address+" port=8080")
		s := stage(t, traffic.Options{}, configs, services)
		for _, own := range []string{"2001:db8::1", "2001:0db8::0001"} {
			if got := s.ask(at(edge(), own), envoy.ListenerType).names; !slices.Equal(got, []string{"::_8080"}) {
				t.Errorf("endpoint %s, router %s: the listeners are %q", address, own, got)
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
		{"::ffff:0.0.0.0", "0:0::0", ""}, // none that can be called
	} {
		a.DefaultAddress, b.DefaultAddress = tc.a, tc.b
		s := stage(t, traffic.Options{}, nil, populate(a, b))
		want := map[string][]string{
			"a.example.com:80": {"a.example.com", "a.example.com."},
			"b.example.com:80": {"b.example.com", "b.example.com."}, "allow_any": {"*"},
		}
		if tc.domain != "" {
			want["a.example.com:80"] = append(want["a.example.com:80"], tc.domain)
		}
		got := make(map[string][]string)
		for _, h := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts() {
			got[h.GetName()] = h.GetDomains()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s and %s (-want +got):\n%s", tc.a, tc.b, diff)
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
	s := stage(t, traffic.Options{Mesh: &meshconfig.MeshConfig{}}, configs, cartPopulation())
	want := []string{
		"0.0.0.0_80: HTTP", "0.0.0.0_81: HTTP",
		"http.80: [2001:db8::1] /a>" + cartOutbound + " /b>" + cartOutbound, "http.80: 10.0.0.1 /b>" + cartOutbound,
		"http.81: [2001:db8::1] /a>" + cartOutbound + " /b>" + cartOutbound,
	}
	if diff := cmp.Diff(want, describeRouter(s, edge())); diff != "" {
		t.Errorf("router (-want +got):\n%s", diff)
	}
	domains := make(map[string]int)
	for _, h := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts() {
		for _, d := range h.GetDomains() {
			domains[d]++
		}
	}
	if domains["[2001:db8::1]"] != 1 || domains["10.0.0.1"] != 1 {
		t.Errorf("the domains of a sidecar are %v", domains)
	}
}
