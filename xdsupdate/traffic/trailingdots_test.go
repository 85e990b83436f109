// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestTrailingDots: a host name with the dot of the root is the name without, in services and in all
// objects.
func TestTrailingDots(t *testing.T) {
	const name, cluster = "cart.shop.svc.cluster.local", "outbound|80|v1|cart.shop.svc.cluster.local"
	for _, service := range []string{name, name + "."} {
		s := stage(t, traffic.Options{}, objectsOf(t,
			`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [
				{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["a.example.com."]},
				{"port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "hosts": ["b.example.com."], "tls": {"mode": "SIMPLE", "credentialName": "c"}},
				{"port": {"number": 9443, "name": "tls", "protocol": "TLS"}, "hosts": ["c.example.com"], "tls": {"mode": "PASSTHROUGH"}}]}`,
			`VirtualService shop/edge {"hosts": ["a.example.com", "b.example.com.", "c.example.com."], "gateways": ["ingress/edge"],
				"http": [{"route": [{"destination": {"host": "cart.shop.svc.cluster.local.", "subset": "v1"}}]}],
				"tls": [{"match": [{"sniHosts": ["c.example.com."]}], "route": [{"destination": {"host": "cart.shop.svc.cluster.local."}}]}]}`,
			`VirtualService shop/mesh {"hosts": ["cart.shop.svc.cluster.local."],
				"http": [{"match": [{"uri": {"prefix": "/v1"}}], "route": [{"destination": {"host": "cart", "subset": "v1"}}]}]}`,
			`DestinationRule shop/cart {"host": "cart.shop.svc.cluster.local.", "subsets": [{"name": "v1"}]}`,
			`Sidecar shop/all {"egress": [{"hosts": ["./cart.shop.svc.cluster.local."]}]}`,
		), populate(testService("shop", registry.Hostname(service), 80)))
		want := cluster + service[len(name):]
		for port, host := range map[string]string{"http.80": "a.example.com", "https.443.https.edge.ingress": "b.example.com"} {
			if got := clusterOf(s.routes(edge(), port), host); got != want {
				t.Errorf("%s at the gateway leads to %q, want %q", host, got, want)
			}
		}
		if names := s.listener(edge(), "0.0.0.0_9443").GetFilterChains()[0].GetFilterChainMatch().GetServerNames(); len(names) != 1 || names[0] != "c.example.com" {
			t.Errorf("passed through are %q", names)
		}
		if names := s.listener(edge(), "0.0.0.0_443").GetFilterChains()[0].GetFilterChainMatch().GetServerNames(); len(names) != 1 || names[0] != "b.example.com" {
			t.Errorf("terminated are %q", names)
		}
		for _, host := range []string{name, name + ".", "cart"} {
			if got := clusterOf(s.routes(in("sidecar", "shop"), "80"), host); got != want {
				t.Errorf("%s leads to %q, want %q", host, got, want)
			}
		}
		if s.cluster(in("sidecar", "shop"), want) == nil || s.cluster(edge(), want) == nil {
			t.Errorf("no cluster %s", want)
		}
		if found := s.ineffective(); found != nil {
			t.Errorf("without effect: %q", found)
		}
	}
}
