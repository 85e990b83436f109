// SPDX-License-Identifier: Apache-2.0

package meshtest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/meshtest"
)

const mesh = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress}
spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  gateways: [ingress/edge]
  http: [{match: [{uri: {prefix: /old}}], redirect: {uri: /new}}]
`

const cases = `
cases:
- name: old links are redirected
  from: {gateway: ingress, labels: {app: edge}}
  request: {port: 80, host: cart.example.com, path: /old}
  expect: {redirect: "http://cart.example.com/new"}
- name: everything else is, too
  from: {gateway: ingress, labels: {app: edge}}
  request: {port: 80, host: cart.example.com, path: /other}
  expect: {redirect: "http://cart.example.com/new"}
`

func Example() {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	registries := aggregate.NewController()
	policies := traffic.New(configs)
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })

	err := manifest.Apply(configs, []byte(mesh), manifest.Options{})
	configs.Drain()
	fmt.Println(err, server.Flush(context.Background()))
	parsed, err := meshtest.Parse("cases.yaml", []byte(cases))
	fmt.Println(err)
	results := meshtest.Run(policies, parsed)
	fmt.Println(meshtest.WriteText(os.Stdout, results), meshtest.Passed(results))
	// Output:
	// <nil> <nil>
	// <nil>
	// === RUN   old links are redirected
	// --- PASS: old links are redirected
	// === RUN   everything else is, too
	//     cases.yaml:7: nothing decides about the request: no rule
	// --- ERROR: everything else is, too
	// FAIL: 1 of 2 cases
	// <nil> false
}
