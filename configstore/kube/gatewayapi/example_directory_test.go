// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

const shop = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: istio
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart.example.com]
  rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: cart.internal, port: 8080}]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.internal]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.9}]
`

// machine is an Infrastructure on the local machine.
type machine struct{}

func (machine) Ensure(context.Context, gatewayapi.Desired) (gatewayapi.Provided, error) {
	return gatewayapi.Provided{Ready: true, Addresses: []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.1"}}}, nil
}

func (machine) Remove(context.Context, gatewayapi.Key) error { return nil }

// The objects of a gateway without a cluster are in a directory.
func ExampleNewCache() {
	dir, err := os.MkdirTemp("", "gateway")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(shop), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas())))
	files := file.New(dir, objects.Store)
	// For traffic.New, serviceentry.New …
	configs := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: machine{}})

	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() { files.Run(stop) })
	running.Go(func() { configs.Run(stop) })
	if err := configstore.WaitForSync(context.Background(), files, configs); err != nil {
		fmt.Println(err)
	}
	if err := configs.Flush(context.Background()); err != nil { // the configs are delivered
		fmt.Println(err)
	}
	for _, config := range configs.List(istio.VirtualService, configstore.NamespaceAll) {
		spec := config.Spec.(*networking.VirtualService)
		fmt.Println(spec.GetHosts(), spec.GetHttp()[0].GetRoute()[0].GetDestination().GetHost())
	}
	route := gatewayapi.ObjectKey{Kind: gatewayapi.KindHTTPRoute, Key: gatewayapi.Key{Namespace: "shop", Name: "cart"}}
	for _, condition := range configs.Snapshot().Status(route).(*gatewayv1.RouteStatus).Parents[0].Conditions {
		fmt.Println(condition.Type, condition.Status)
	}
	close(stop)
	running.Wait()

	// Output:
	// [cart.example.com] cart.internal
	// Accepted True
	// ResolvedRefs True
}
