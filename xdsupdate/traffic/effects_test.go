// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

func TestEffects(t *testing.T) {
	objects := objectsOf(t,
		`VirtualService shop/cart {"hosts": ["cart", "other.example.com"], "gateways": ["mesh", "infra/edge", "infra/none"], "exportTo": [".", "billing"],
			"http": [{"delegate": {"name": "part"}}]}`,
		`VirtualService shop/part {"http": [{"route": [{"destination": {"host": "cart"}}]}]}`,
		`DestinationRule shop/cart {"host": "cart"}`,
		`DestinationRule billing/all {"host": "*.svc.cluster.local", "workloadSelector": {"matchLabels": {"app": "ledger"}}}`,
		`Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`,
		`Sidecar shop/app {"workloadSelector": {"labels": {"app": "cart"}}, "egress": [{"hosts": ["./*"]}]}`,
	)
	s := stage(t, traffic.Options{}, objects, populate(testService("shop", cart, 80)))
	for _, tc := range []struct {
		kind            configstore.GroupVersionKind
		namespace, name string
		want            []string
	}{
		{istio.VirtualService, "shop", "cart", []string{
			"sidecars and gRPC clients of namespaces billing, shop: requests to cart.shop.svc.cluster.local",
			"sidecars of namespaces billing, shop: requests to other.example.com",
			"routers of Gateway infra/edge: connections and requests to cart.shop.svc.cluster.local, other.example.com",
			"VirtualService shop/cart: spec.hosts[1]: no service has this host name; only sidecars serve it, on port 80",
			"VirtualService shop/cart: spec.gateways[2]: there is no Gateway infra/none",
		}},
		{istio.VirtualService, "shop", "part", []string{"clients of VirtualService shop/cart: in the place of spec.http[0]"}},
		{istio.DestinationRule, "shop", "cart", []string{"clients of all namespaces: clusters of service shop/cart.shop.svc.cluster.local"}},
		{istio.DestinationRule, "billing", "all", []string{
			"clients of namespace billing with the labels app=ledger: clusters of service shop/cart.shop.svc.cluster.local",
		}},
		{istio.Gateway, "infra", "edge", []string{"routers with the labels app=edge: HTTP on port 80 for *"}},
		{istio.Sidecar, "shop", "app", []string{"sidecars and gRPC clients of namespace shop with the labels app=cart: 1 services are seen"}},
		{istio.Sidecar, "shop", "unknown", nil},
	} {
		does, not := s.policies.Effects(configstore.ConfigKey{Kind: tc.kind, Namespace: tc.namespace, Name: tc.name})
		var got []string
		for _, e := range does {
			got = append(got, e.String())
		}
		for _, e := range not {
			got = append(got, e.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("effects of %s %s/%s (-want +got):\n%s", tc.kind.Kind, tc.namespace, tc.name, diff)
		}
	}
}
