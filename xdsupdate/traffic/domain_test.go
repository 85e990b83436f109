// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestDomain: short names in objects and requests are those of services in the domain
// of the options.
func TestDomain(t *testing.T) {
	for option, domain := range map[string]string{"": "cluster.local", "Mesh.Example": "mesh.example"} {
		s := newScene(t, traffic.Options{Domain: option})
		host := "cart.shop.svc." + domain
		s.service(&registry.Service{
			Hostname: registry.Hostname(host), Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		})
		s.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart], http: [{name: known, route: [{destination: {host: cart, subset: v1}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec: {host: cart, subsets: [{name: v1}]}
`)
		rc := s.routes(node("sidecar"), "80")
		for _, name := range []string{host, "cart", "cart.shop", "cart.shop.svc"} {
			if got, want := clusterOf(rc, name), "outbound|80|v1|"+host; got != want {
				t.Errorf("domain %q: %s leads to %q, want %q", option, name, got, want)
			}
		}
		if s.cluster(node("sidecar"), "outbound|80|v1|"+host) == nil {
			t.Errorf("domain %q: the DestinationRule does not count", option)
		}
		if s.send(node("grpc"), envoy.ListenerType, "cart:80") == nil {
			t.Errorf("domain %q: gRPC clients do not find the service by its short name", option)
		}
		for _, finding := range s.policies.Ineffective() {
			t.Errorf("domain %q: %s", option, finding)
		}
	}
}
