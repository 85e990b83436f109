// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/meshtest"
)

const guarded = shop + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: old, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart.example.com]
  rules:
  - matches: [{path: {type: PathPrefix, value: /old}}]
    filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: foreign, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [foreign.example.com]
  rules: [{backendRefs: [{name: cart, namespace: other, port: 80}]}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  action: DENY
  rules: [{to: [{operation: {paths: [/admin]}}]}]
`

const guardedCases = `
cases:
- name: a route
  from: {gateway: shop, labels: {gateway.networking.k8s.io/gateway-name: edge}}
  request: {port: 80, host: cart.example.com, path: /x}
  expect: {to: "cart.internal:8080"}
- name: a redirect
  from: {gateway: shop, labels: {gateway.networking.k8s.io/gateway-name: edge}}
  request: {port: 80, host: cart.example.com, path: /old/x}
  expect: {redirect: "http://cart.example.com/new/x", status: 302}
- name: a policy for the Gateway
  from: {gateway: shop, labels: {gateway.networking.k8s.io/gateway-name: edge}}
  request: {port: 80, host: cart.example.com, path: /admin}
  expect: {denied: "AuthorizationPolicy shop/admin, rules[0]", status: 403}
- name: a backend that no grant allows
  from: {gateway: shop, labels: {gateway.networking.k8s.io/gateway-name: edge}}
  request: {port: 80, host: foreign.example.com}
  expect: {status: 500}
- name: no route
  from: {gateway: shop, labels: {gateway.networking.k8s.io/gateway-name: edge}}
  request: {port: 80, host: other.example.com}
  expect: {status: 404}
`

// TestMeshCases: cases of meshtest are decided by objects of the Gateway API.
func TestMeshCases(t *testing.T) {
	t.Parallel()
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas())))
	configs := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: machine{}})
	registries := aggregate.NewController()
	policies := traffic.New(configs)
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	if err := manifest.Apply(objects, []byte(guarded), manifest.Options{}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { configs.Run(stop) })
	defer running.Wait()
	defer close(stop)
	if err := configstore.WaitForSync(t.Context(), configs); err != nil {
		t.Fatal(err)
	}
	if err := configs.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	cases, err := meshtest.Parse("cases.yaml", []byte(guardedCases))
	if err != nil {
		t.Fatal(err)
	}
	results := meshtest.Run(policies, cases)
	var out strings.Builder
	if err := meshtest.WriteText(&out, results); err != nil || !meshtest.Passed(results) {
		t.Errorf("%v\n%s", err, &out)
	}
}
