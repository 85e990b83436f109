// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

func TestExplain(t *testing.T) {
	const (
		rules = `DestinationRule shop/cart {"host": "cart", "trafficPolicy": {"outlierDetection": {"consecutive5xxErrors": 5}},
			"subsets": [{"name": "v1", "labels": {"version": "v1"}}, {"name": "v2", "labels": {"version": "v2"}}]}`
		split = `VirtualService shop/cart {"hosts": ["cart"], "http": [
			{"name": "canary", "match": [{"headers": {"x-user": {"exact": "eve"}}}], "route": [{"destination": {"host": "cart", "subset": "v2"}}]},
			{"match": [{"uri": {"prefix": "/old"}, "method": {"exact": "POST"}}], "directResponse": {"status": 410}},
			{"match": [{"queryParams": {"gone": {"exact": "1"}}}], "fault": {"abort": {"httpStatus": 500, "percentage": {"value": 50}}},
			 "route": [{"destination": {"host": "nobody"}}]},
			{"match": [{"port": 81}], "route": [{"destination": {"host": "cart", "subset": "v9"}}]},
			{"match": [{"uri": {"prefix": "/cart"}}], "route": [
				{"destination": {"host": "cart", "subset": "v1"}, "weight": 90}, {"destination": {"host": "cart", "subset": "v2"}, "weight": 10}]}
		]}`
		edge = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*.example.com"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`
		all  = `VirtualService shop/all {"hosts": ["shop.example.com"], "gateways": ["infra/edge"], "http": [{"route": [{"destination": {"host": "cart"}}]}]}`
		part = `VirtualService shop/part {"hosts": ["shop.example.com"], "gateways": ["infra/edge"], "http": [
			{"match": [{"uri": {"exact": "/x"}}], "route": [{"destination": {"host": "cart"}}]}]}`
	)
	app, gateway := in("sidecar", "shop"), in("router", "infra", "app=edge")
	app.Locality = &core.Locality{Region: "eu", Zone: "a"}
	for _, tc := range []struct {
		name    string
		objects []string
		client  *core.Node
		call    traffic.Call
		want    string
	}{
		{
			"the default route", nil, app,
			traffic.Call{Host: cart, Port: 80},
			`service shop/cart.shop.svc.cluster.local
no VirtualService decides: the default route
  to outbound|80||cart.shop.svc.cluster.local
    priority 0: 10.0.0.1:80, weight 1, locality ""
    priority 0: 10.0.0.2:80, weight 1, locality ""
`,
		},
		{
			"weights",
			[]string{rules, split},
			app,
			traffic.Call{Host: cart, Port: 80, Path: "/cart?a=b"},
			`service shop/cart.shop.svc.cluster.local
VirtualService shop/cart, http[4]: sent on
  to outbound|80|v1|cart.shop.svc.cluster.local, weight 90
    DestinationRule shop/cart, of the client's namespace
    priority 0: 10.0.0.1:80, weight 1, locality ""
  to outbound|80|v2|cart.shop.svc.cluster.local, weight 10
    DestinationRule shop/cart, of the client's namespace
    priority 0: 10.0.0.2:80, weight 1, locality ""
`,
		},
		{
			"a header",
			[]string{rules, split},
			app,
			traffic.Call{Host: cart, Port: 80, Path: "/cart", Headers: map[string]string{"x-user": "eve"}},
			`service shop/cart.shop.svc.cluster.local
VirtualService shop/cart, http[0] "canary": sent on
  to outbound|80|v2|cart.shop.svc.cluster.local
    DestinationRule shop/cart, of the client's namespace
    priority 0: 10.0.0.2:80, weight 1, locality ""
`,
		},
		{
			"a method",
			[]string{split},
			app,
			traffic.Call{Host: cart, Port: 80, Path: "/old/x", Method: "POST"},
			"service shop/cart.shop.svc.cluster.local\nVirtualService shop/cart, http[1]: answered with 410\n",
		},
		{
			"a query, a fault, an unknown service",
			[]string{split},
			app,
			traffic.Call{Host: cart, Port: 80, Path: "/?gone=1"},
			`service shop/cart.shop.svc.cluster.local
VirtualService shop/cart, http[2]: sent on, 50 % aborted
  to outbound|80||nobody.shop.svc.cluster.local
    missing: the client sees no service of this name
`,
		},
		{
			"nothing matches",
			[]string{split},
			app,
			traffic.Call{Host: cart, Port: 80, Path: "/"},
			"service shop/cart.shop.svc.cluster.local\nVirtualService shop/cart decides: none of its rules matches: 404\n",
		},
		{
			"a younger VirtualService",
			[]string{`VirtualService shop/first {"hosts": ["cart"], "http": [{"directResponse": {"status": 200}}]}`, split},
			app,
			traffic.Call{Host: cart, Port: 80},
			`service shop/cart.shop.svc.cluster.local
VirtualService shop/cart does not count: VirtualService shop/first comes before it
VirtualService shop/first, http[0]: answered with 200
`,
		},
		{
			"a Sidecar",
			[]string{`Sidecar shop/default {"egress": [{"hosts": ["other/*"]}], "outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}`},
			app,
			traffic.Call{Host: cart, Port: 80},
			"Sidecar shop/default limits what the client sees\nno VirtualService decides: the host is unknown and answered with 502\n",
		},
		{
			"a gRPC client and an unknown host", nil, in("grpc", "shop"),
			traffic.Call{Host: "nobody", Port: 80},
			"no VirtualService decides: the client sees no service of this name, so it gets no listener\n",
		},
		{
			"a gateway",
			[]string{edge, all, part},
			gateway,
			traffic.Call{Host: "shop.example.com", Port: 80, Path: "/x"},
			`VirtualService shop/part, http[0]: sent on
  to outbound|80||cart.shop.svc.cluster.local
    priority 0: 10.0.0.1:80, weight 1, locality ""
    priority 0: 10.0.0.2:80, weight 1, locality ""
`,
		},
		{
			"a gateway without the host",
			[]string{edge, all},
			gateway,
			traffic.Call{Host: "other.example.com", Port: 80},
			"no VirtualService decides: no VirtualService of a Gateway has the host: 404\n",
		},
		{
			"a gateway without the port",
			[]string{edge, all},
			gateway,
			traffic.Call{Host: "shop.example.com", Port: 443},
			"no VirtualService decides: no Gateway that selects the proxy has an HTTP server on port 443\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			svc := testService("shop", cart, 80)
			services := populate(svc)
			services.place(svc, "10.0.0.1 version=v1", "10.0.0.2 version=v2")
			s := stage(t, traffic.Options{}, objectsOf(t, tc.objects...), services)
			got := s.explain(tc.client, tc.call)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainWithoutNamespace: texts about a service without a namespace have its name alone.
func TestExplainWithoutNamespace(t *testing.T) {
	s := stage(t, traffic.Options{}, nil, populate(testService("", "bare.example.com", 80)))
	got := s.explain(in("sidecar", "shop"), traffic.Call{Host: "bare.example.com", Port: 81}).Outcome
	if want := "service bare.example.com has no port 81 that the client sees"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
