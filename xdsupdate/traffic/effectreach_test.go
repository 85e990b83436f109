// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestUnreachable: what routes lead to that their clients do not reach, and settings
// that nothing uses.
func TestUnreachable(t *testing.T) {
	const (
		edge   = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`
		passed = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 443, "name": "tls", "protocol": "TLS"}, "tls": {"mode": "PASSTHROUGH"`
		at     = `VirtualService shop/edge {"hosts": ["a.example.com"], "gateways": ["infra/edge"], `
		toA    = at + `"tls": [{"match": [{"sniHosts": ["a.example.com"]}], "route": [{"destination": {"host": "cart"}}]}]}`
	)
	for _, tc := range []struct {
		name    string
		objects []string
		want    []string
	}{
		{"reached", []string{
			edge, at + `"http": [{"route": [{"destination": {"host": "cart"}}, {"destination": {"host": "many", "port": {"number": 90}}}]}]}`,
			`VirtualService shop/mesh {"hosts": ["many"], "http": [{"route": [{"destination": {"host": "many"}}, {"destination": {"host": "hidden"}}, {"destination": {"host": "cart"}}]}]}`,
		}, nil},
		{
			"several ports",
			[]string{edge, at + `"http": [{"route": [{"destination": {"host": "many"}}]}]}`},
			[]string{"VirtualService shop/edge: spec.http[0].route[0].destination.port: service many.shop.svc.cluster.local has several ports, " +
				"and none is 80, that of the server of Gateway infra/edge: requests fail there"},
		},
		{
			"several ports, of a route for another one",
			[]string{edge, at + `"http": [{"match": [{"port": 81}], "route": [{"destination": {"host": "many"}}]}]}`},
			nil,
		},
		{
			"several ports, of a TLS route",
			[]string{passed + `}}]}`, at + `"tls": [{"match": [{"sniHosts": ["a.example.com"]}], "route": [{"destination": {"host": "many"}}]}]}`},
			[]string{"VirtualService shop/edge: spec.tls[0].route[0].destination.port: service many.shop.svc.cluster.local has several ports, " +
				"and none is 443, that of the server of Gateway infra/edge: requests fail there"},
		},
		{
			"several ports, in the mesh",
			[]string{`VirtualService shop/mesh {"hosts": ["cart"], "http": [{"route": [{"destination": {"host": "many"}}]}]}`},
			[]string{"VirtualService shop/mesh: spec.http[0].route[0].destination.port: service many.shop.svc.cluster.local has several ports, " +
				"and none is 80, that of cart.shop.svc.cluster.local: requests fail there"},
		},
		{
			"hidden from a gateway",
			[]string{edge, at + `"http": [{"route": [{"destination": {"host": "hidden"}}]}]}`},
			[]string{"VirtualService shop/edge: spec.http[0].route[0].destination.host: service hidden.shop.svc.cluster.local is not exported " +
				"to namespace infra of Gateway infra/edge: requests fail there"},
		},
		{
			"hidden in the mesh",
			[]string{`VirtualService other/mesh {"hosts": ["cart.shop.svc.cluster.local"], "exportTo": ["."], "http": [{"route": [{"destination": {"host": "hidden.shop.svc.cluster.local"}}]}]}`},
			[]string{"VirtualService other/mesh: spec.http[0].route[0].destination.host: service hidden.shop.svc.cluster.local is not exported " +
				"to clients that have the VirtualService: requests fail"},
		},
		{
			"tunnels",
			[]string{`DestinationRule shop/cart {"host": "cart", "trafficPolicy": {"tunnel": {"protocol": "CONNECT", "targetHost": "x", "targetPort": 1}}}`},
			[]string{"DestinationRule shop/cart: spec.trafficPolicy.tunnel: no TCP proxy tunnels connections: those of sidecars are the program's, and gateways send connections as they are"},
		},
		{
			"passed on by a gateway",
			[]string{
				edge, at + `"http": [{"route": [{"destination": {"host": "cart"}}]}]}`,
				`DestinationRule shop/cart {"host": "cart", "trafficPolicy": {"loadBalancer": {"simple": "PASSTHROUGH"}}}`,
				`DestinationRule shop/many {"host": "many", "trafficPolicy": {"loadBalancer": {"simple": "PASSTHROUGH"}}}`,
			},
			[]string{"DestinationRule shop/cart: spec.trafficPolicy.loadBalancer.simple: gateways cannot: PASSTHROUGH is to where a client connects, " +
				"which is the gateway itself, and VirtualService shop/edge routes to cart.shop.svc.cluster.local there"},
		},
		{
			"settings of TLS that is passed on",
			[]string{passed + `, "credentialName": "c", "subjectAltNames": ["x"], "httpsRedirect": true}}]}`, toA},
			[]string{
				"Gateway infra/edge: spec.servers[0].tls.httpsRedirect: a server of mode PASSTHROUGH passes TLS on, and takes no part in it",
				"Gateway infra/edge: spec.servers[0].tls.credentialName: a server of mode PASSTHROUGH passes TLS on, and takes no part in it",
				"Gateway infra/edge: spec.servers[0].tls.subjectAltNames: a server of mode PASSTHROUGH passes TLS on, and takes no part in it",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hidden := testService("shop", "hidden.shop.svc.cluster.local", 80)
			hidden.Attributes.ExportTo = []registry.Visibility{"shop"}
			services := populate(testService("shop", "cart.shop.svc.cluster.local", 80), testService("shop", "many.shop.svc.cluster.local", 81, 90), hidden)
			got := stage(t, traffic.Options{}, objectsOf(t, tc.objects...), services).ineffective()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("without effect (-want +got):\n%s", diff)
			}
		})
	}
}
