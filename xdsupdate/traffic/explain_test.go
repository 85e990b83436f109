// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
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
	app := &proxy{namespace: "shop", locality: "eu/a"}
	gateway := &proxy{role: router, namespace: "infra", labels: registry.Labels{"app": "edge"}}
	const cart = registry.Hostname("cart.shop.svc.cluster.local")
	for _, tc := range []struct {
		name    string
		objects []string
		proxy   *proxy
		call    Call
		want    string
	}{
		{
			"the default route", nil, app,
			Call{Host: cart, Port: 80},
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
			Call{Host: cart, Port: 80, Path: "/cart?a=b"},
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
			Call{Host: cart, Port: 80, Path: "/cart", Headers: map[string]string{"x-user": "eve"}},
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
			Call{Host: cart, Port: 80, Path: "/old/x", Method: "POST"},
			"service shop/cart.shop.svc.cluster.local\nVirtualService shop/cart, http[1]: answered with 410\n",
		},
		{
			"a query, a fault, an unknown service",
			[]string{split},
			app,
			Call{Host: cart, Port: 80, Path: "/?gone=1"},
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
			Call{Host: cart, Port: 80, Path: "/"},
			"service shop/cart.shop.svc.cluster.local\nVirtualService shop/cart decides: none of its rules matches: 404\n",
		},
		{
			"a younger VirtualService",
			[]string{`VirtualService shop/first {"hosts": ["cart"], "http": [{"directResponse": {"status": 200}}]}`, split},
			app,
			Call{Host: cart, Port: 80},
			`service shop/cart.shop.svc.cluster.local
VirtualService shop/cart does not count: VirtualService shop/first comes before it
VirtualService shop/first, http[0]: answered with 200
`,
		},
		{
			"a Sidecar",
			[]string{`Sidecar shop/default {"egress": [{"hosts": ["other/*"]}], "outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"}}`},
			app,
			Call{Host: cart, Port: 80},
			"Sidecar shop/default limits what the client sees\nno VirtualService decides: the host is unknown and answered with 502\n",
		},
		{
			"a gRPC client and an unknown host", nil, &proxy{role: grpcClient, namespace: "shop"},
			Call{Host: "nobody", Port: 80},
			"no VirtualService decides: the client sees no service of this name, so it gets no listener\n",
		},
		{
			"a gateway",
			[]string{edge, all, part},
			gateway,
			Call{Host: "shop.example.com", Port: 80, Path: "/x"},
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
			Call{Host: "other.example.com", Port: 80},
			"no VirtualService decides: no VirtualService of a Gateway has the host: 404\n",
		},
		{
			"a gateway without the port",
			[]string{edge, all},
			gateway,
			Call{Host: "shop.example.com", Port: 443},
			"no VirtualService decides: no Gateway that selects the proxy has an HTTP server on port 443\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configs configList
			for _, text := range tc.objects {
				configs.object(t, text)
			}
			svc := testService("shop", cart, 80)
			w := newListWorld(svc)
			w.place(svc, "10.0.0.1 version=v1", "10.0.0.2 version=v2")
			got := newState(newIndex(configs, newSettings(Options{})), w).explain(tc.proxy, tc.call)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}
