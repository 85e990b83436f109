// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"fmt"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

const edge80 = `
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
  http:
  - match: [{uri: {prefix: /v1/}}]
    rewrite: {uri: /}
    route: [{destination: {host: blue.internal}, weight: 90}, {destination: {host: green.internal}, weight: 10}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: backends, namespace: shop}
spec:
  hosts: [blue.internal, green.internal]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.1, ports: {http: 8080}}]
`

func ExamplePolicies_Watch() {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	registries := aggregate.NewController()
	policies := traffic.New(configs)
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	watch := policies.Watch(route.Gateway, &registry.Proxy{Namespace: "ingress", Labels: registry.Labels{"app": "edge"}})
	defer watch.Close()

	// A program runs the parts, and watch.Run, which has the latest router in watch.Router. Here each
	// step is taken at once.
	err := manifest.Apply(configs, []byte(edge80), manifest.Options{})
	configs.Drain()
	fmt.Println(err, server.Flush(context.Background()))
	router, _, err := watch.Next(context.Background())
	fmt.Println(err)

	for _, random := range []uint64{0, 95} { // The destination is chosen by it.
		d := router.Route(route.Request{Port: 80, Authority: "cart.example.com", Path: "/v1/items?page=2", Random: random})
		to := router.Endpoints(d.Destination.Cluster).Choose(random)
		fmt.Println(d.Destination.Host, to.Address, d.Path, "by", d.Rule.Origin)
	}
	d := router.Route(route.Request{Port: 80, Authority: "other.example.com"})
	fmt.Println(d.Status, d.Reason)
	// Output:
	// <nil> <nil>
	// <nil>
	// blue.internal 10.0.0.1:8080 /items?page=2 by VirtualService shop/cart, http[0]
	// green.internal 10.0.0.1:8080 /items?page=2 by VirtualService shop/cart, http[0]
	// 404 no virtual host
}
