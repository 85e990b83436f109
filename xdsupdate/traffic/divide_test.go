// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestRuleBehindTooManyMatches: a rule that delegates is served behind one whose delegate
// has too many matches.
func TestRuleBehindTooManyMatches(t *testing.T) {
	s := limitedStage(t, traffic.Limits{Matches: 50}, func(l *configList) {
		root := toCart("/own", []string{"ingress/a"}, "cart.shop.svc.cluster.local")
		for _, name := range []string{"big", "small"} {
			root.Http = append(root.Http, &networking.HTTPRoute{Match: matchesOf(10, ""), Delegate: &networking.Delegate{Name: name}})
		}
		l.add(istio.VirtualService, "shop/root", root)
		for name, n := range map[string]int{"big": 10, "small": 2} {
			d := toCart("/", nil)
			d.Hosts, d.Http[0].Match = nil, matchesOf(n, name)
			l.add(istio.VirtualService, "shop/"+name, d)
		}
	})
	got := s.ask(edge(), envoy.RouteType, "http.80")
	text := fmt.Sprint(got.resources["http.80"])
	if failing, small := strings.Count(text, "status:500"), strings.Count(text, `name:"small"`); failing != 10 || small != 20 || len(got.failed) != 1 {
		t.Errorf("%d routes fail, %d are of the small delegate, errors %v", failing, small, got.failed)
	}
}

// TestRoutesOfOneHost: of two VirtualServices for one host the newer one is left out if
// both together have too many routes.
func TestRoutesOfOneHost(t *testing.T) {
	for limit, left := range map[int]int{4: 0, 3: 1} {
		var configs configList
		configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
		for _, name := range []string{"old", "new"} {
			v := toCart("/"+name, []string{"ingress/a"}, "a.com")
			v.Http[0].Match = append(v.Http[0].Match, matchesOf(1, "")...)
			configs.add(istio.VirtualService, "shop/"+name, v)
		}
		s := stage(t, traffic.Options{Limits: traffic.Limits{Routes: limit}}, configs, cartPopulation())
		got := s.ask(edge(), envoy.RouteType, "http.80")
		if routes := got.resources["http.80"].(*routev3.RouteConfiguration).GetVirtualHosts()[0].GetRoutes(); len(routes) != 4-2*left || routes[0].GetMatch().GetPrefix() != "/old" || len(got.failed) != left {
			t.Errorf("limit %d: %d routes, %v", limit, len(routes), got.failed)
		}
		if left > 0 && !strings.Contains(got.failed["http.80"], "shop/new: spec.http") {
			t.Errorf("the error is %v", got.failed)
		}
	}
}

// TestGatewaysDivide: what a VirtualService may repeat is divided among the Gateways that
// it names.
func TestGatewaysDivide(t *testing.T) {
	for gateways, served := range map[int]bool{2: true, 3: false} {
		var configs configList
		var names []string
		for i := range gateways {
			names = append(names, fmt.Sprintf("ingress/g%d", i))
			configs.add(istio.Gateway, names[i], gatewayOf(serverOf(uint32(80+i), "HTTP", "", "*")))
		}
		configs.add(istio.VirtualService, "shop/v", toCart("/"+strings.Repeat("x", 1000), names, "a.com"))
		s := stage(t, traffic.Options{Limits: traffic.Limits{RepeatedBytes: 3000}}, configs, cartPopulation())
		for i := range gateways {
			if of := hostsOfRoutes(s, edge(), fmt.Sprintf("http.%d", 80+i)); (of["a.com"] == "served") != served {
				t.Errorf("%d Gateways: %v", gateways, of)
			}
		}
	}
}

// TestPassingServersDivide: what filter chains a Gateway may have is divided among its
// AUTO_PASSTHROUGH servers, and each has those of the oldest services.
func TestPassingServersDivide(t *testing.T) {
	var services []*registry.Service
	for i := range 6 {
		s := testService("shop", registry.Hostname(fmt.Sprintf("s%d.example.com", i)), 80)
		s.CreationTime = time.Unix(int64(10-i), 0)
		services = append(services, s)
	}
	for servers, want := range map[uint32]int{1: 6, 2: 3} {
		var list []*networking.Server
		for i := range servers {
			list = append(list, serverOf(15443+i, "TLS", "auto", "*.example.com"))
		}
		var configs configList
		configs.add(istio.Gateway, "ingress/a", gatewayOf(list...))
		s := stage(t, traffic.Options{Limits: traffic.Limits{FilterChains: 6}}, configs, populate(services...))
		for i := range servers {
			name := fmt.Sprintf("0.0.0.0_%d", 15443+i)
			got := s.ask(edge(), envoy.ListenerType, name)
			l, _ := got.resources[name].(*listenerv3.Listener)
			if len(l.GetFilterChains()) != want || len(got.failed) != int(servers)-1 {
				t.Errorf("%d servers: %d filter chains, %v", servers, len(l.GetFilterChains()), got.failed)
			}
			if text := fmt.Sprint(l); want == 3 && (strings.Contains(text, "s2.example.com") || !strings.Contains(text, "s3.example.com")) {
				t.Errorf("%d servers: %s", servers, text)
			}
		}
	}
}
