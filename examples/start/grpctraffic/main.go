// SPDX-License-Identifier: Apache-2.0

// Command grpctraffic splits the calls of a gRPC client, without a proxy, between two versions of a
// service: by a header first, then by weights, without a lost call.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// service is a ServiceEntry with an endpoint of each version, and their subsets.
const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.internal]
  ports: [{number: 80, name: grpc, protocol: GRPC}]
  resolution: STATIC
  endpoints:
  - {address: 127.0.0.1, ports: {grpc: %d}, labels: {version: v1}}
  - {address: 127.0.0.1, ports: {grpc: %d}, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart.shop.internal
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
`

// split is a VirtualService: testers have v2, and others a share of it.
const split = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.internal]
  http:
  - match: [{headers: {user: {exact: tester}}}]
    route: [{destination: {host: cart.shop.internal, subset: v2}}]
  - route:
    - {destination: {host: cart.shop.internal, subset: v1}, weight: %d}
    - {destination: {host: cart.shop.internal, subset: v2}, weight: %d}
`

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v1, stopV1 := backend(ctx, "v1")
	defer stopV1()
	v2, stopV2 := backend(ctx, "v2")
	defer stopV2()

	configs := memory.NewController(memory.Make(istio.Schemas()))
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(configs)}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
	apply(configs, fmt.Sprintf(service, v1, v2)+"---"+fmt.Sprintf(split, 100, 0))
	address, stop := serve(ctx, configs, registries, server)
	defer stop()

	conn, err := dial(address, "cart.shop.internal:80")
	check(err)
	defer conn.Close()
	fmt.Println("all to v1:", calls(ctx, conn, 200))
	fmt.Println("a tester:", calls(metadata.AppendToOutgoingContext(ctx, "user", "tester"), conn, 200))
	apply(configs, fmt.Sprintf(split, 0, 100))
	for calls(ctx, conn, 1)["v2"] == 0 { // the routes are on their way
	}
	fmt.Println("all to v2:", calls(ctx, conn, 200))
	apply(configs, fmt.Sprintf(split, 50, 50))
	for calls(ctx, conn, 1)["v1"] == 0 {
	}
	count := calls(ctx, conn, 1000)
	fmt.Println("half and half:", count["v1"] > 400 && count["v2"] > 400)
}

// calls makes some calls, each of which has to succeed, and counts the versions that answer.
func calls(ctx context.Context, conn grpc.ClientConnInterface, n int) map[string]int {
	counts := map[string]int{}
	for range n {
		version, err := ask(ctx, conn)
		check(err)
		counts[version]++
	}
	return counts
}

// apply creates or updates the objects of a text, as kubectl would.
func apply(configs configstore.ConfigStore, text string) {
	for _, d := range manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{}) {
		check(d.Err)
		_, err := configstore.Upsert(configs, d.Config)
		check(err)
	}
}

// serve serves xDS on a free port until stop is called.
func serve(ctx context.Context, configs *memory.Controller, registries *aggregate.Controller, server *ads.Server) (address string, stop func()) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	check(err)
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	server.Register(grpcServer)
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){configs.Run, registries.Run, server.Run} {
		running.Go(func() { run(ended) })
	}
	running.Go(func() { _ = grpcServer.Serve(listener) }) // it returns when it is stopped
	return listener.Addr().String(), func() {
		grpcServer.Stop()
		close(ended)
		running.Wait()
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
