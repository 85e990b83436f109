// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/hops"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// The walk of an HTTPRoute in docs/architecture.md is that of a real change.
func TestWalk(t *testing.T) {
	walk := hops.Walk{
		Page: "../../../docs/architecture.md", Heading: "One rule of an HTTPRoute", File: "route.yaml", TypeURL: envoy.RouteType, Most: 16,
		States: [3]string{"/first", "/second", "/third"}, Text: shop + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: paths, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [paths.example.com]
  rules:
  - matches: [{path: {type: PathPrefix, value: STATE}}]
    backendRefs: [{group: networking.istio.io, kind: Hostname, name: cart.internal, port: 8080}]
`,
	}
	walk.Check(t, hops.Start(t, hops.Options{
		Schemas: gatewayapi.DirectorySchemas().Union(istio.Schemas()),
		Configs: func(objects *memory.Controller) configstore.ConfigStoreCache {
			return gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: machine{}})
		},
		Files: map[string]string{walk.File: walk.Content(0)},
		Type:  "router", Namespace: "shop", Labels: map[string]any{"gateway.networking.k8s.io/gateway-name": "edge"},
		Subscribe: map[string][]string{envoy.ListenerType: nil, envoy.RouteType: {"http.80"}},
	}))
}
