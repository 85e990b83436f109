// SPDX-License-Identifier: Apache-2.0

package hops_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/hops"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// The walks of docs/architecture.md are those of real changes.
func TestWalks(t *testing.T) {
	const page = "../../../docs/architecture.md"
	endpoint := hops.Walk{
		Page: page, Heading: "One endpoint of a ServiceEntry", File: "entry.yaml", TypeURL: envoy.LoadAssignmentType, Most: 15,
		States: [3]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Text: `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: STATE}]
`,
	}
	rule := hops.Walk{
		Page: page, Heading: "One rule of a VirtualService", File: "rule.yaml", TypeURL: envoy.RouteType, Most: 12,
		States: [3]string{"/first", "/second", "/third"}, Text: `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  http: [{match: [{uri: {prefix: STATE}}], route: [{destination: {host: cart.example.com}}]}]
`,
	}
	for _, walk := range []hops.Walk{endpoint, rule} {
		t.Run(walk.File, func(t *testing.T) {
			walk.Check(t, hops.Start(t, hops.Options{
				Schemas: istio.Schemas(), Type: "sidecar", Namespace: "shop",
				Files:     map[string]string{endpoint.File: endpoint.Content(0), rule.File: rule.Content(0)},
				Subscribe: map[string][]string{envoy.ClusterType: nil, envoy.LoadAssignmentType: {"outbound|80||cart.example.com"}, envoy.RouteType: {"80"}},
			}))
		})
	}
}
