// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// toCartByName sends connections to each of some names to cart.
func toCartByName(gateway string, names ...string) *networking.VirtualService {
	spec := &networking.VirtualService{Hosts: names, Gateways: []string{gateway}}
	for _, name := range names {
		spec.Tls = append(spec.Tls, &networking.TLSRoute{
			Match: []*networking.TLSMatchAttributes{{SniHosts: []string{name}}},
			Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "cart"}}},
		})
	}
	return spec
}

// TestTLSRoutesOfTerminatingServers: TLSRoutes of the Gateway API have a filter chain for each
// of their names that a server that terminates TLS has, before the TCP routes of all its
// other names; the TLS routes of Istio's own VirtualServices have none.
func TestTLSRoutesOfTerminatingServers(t *testing.T) {
	const port, to = "0.0.0.0_443: ", " TLS " + cartOutbound
	configs := func(semantics string) configList {
		var out configList
		out.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(443, "TLS", "c", "*.t.com"), serverOf(443, "HTTPS", "d", "*.h.com")))
		out.add(istio.VirtualService, "shop/names", toCartByName("ingress/a", "a.t.com", "b.t.com", "d.h.com"))
		out[1].Annotations = map[string]string{"internal.istio.io/route-semantics": semantics}
		return out
	}
	withTCP := func(semantics string) configList {
		out := configs(semantics)
		out.add(istio.VirtualService, "shop/rest", &networking.VirtualService{
			Hosts: []string{"*"}, Gateways: []string{"ingress/a"},
			Tcp: []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{Host: "cart"}}}}},
		})
		return out
	}
	names, web := []string{port + "a.t.com" + to, port + "b.t.com" + to}, port+"*.h.com TLS HTTP"
	const routes = "https.443.https-443-d.a.ingress: "
	for name, c := range map[string]struct {
		configs configList
		want    []string
	}{
		"TLSRoute": {configs("gateway"), append(slices.Clone(names), web, routes+"a.t.com b.t.com />")},
		"TLSRoute and TCPRoute": {
			withTCP("gateway"), append(slices.Clone(names), port+"*.t.com"+to, web, routes+"*.t.com />"),
		},
		"own":         {configs(""), []string{web, routes + "*"}},
		"own and TCP": {withTCP(""), []string{port + "*.t.com" + to, web, routes + "*.t.com />"}},
	} {
		s := stage(t, traffic.Options{}, c.configs, cartPopulation())
		if diff := cmp.Diff(c.want, describeRouter(s, edge())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got, want := s.found("takes routes of these kinds"), strings.HasPrefix(name, "own"); got != want {
			t.Errorf("%s: routes without effect: %t", name, got)
		}
	}
}
