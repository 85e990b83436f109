// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// A program gives its configs to an istiod whose mesh config has
//
//	configSources:
//	- address: xds://pilot.example.com:15010
func ExampleNewServer() {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	server, grpcServer := mcp.NewServer(configs), grpc.NewServer()
	server.Register(grpcServer)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { configs.Run(stop) })
	running.Go(func() { server.Run(stop) })
	// and grpcServer.Serve(listener)

	fmt.Println(len(server.Proxies()), "control planes are connected")

	close(stop)
	grpcServer.GracefulStop()
	running.Wait()
	// Output: 0 control planes are connected
}

// A program that serves proxies, too, does both on one port.
func ExampleNewProvider() {
	configs := memory.NewController(memory.Make(istio.Schemas()))
	server := ads.New(nil, ads.Options{
		Providers: []ads.Provider{mcp.NewProvider(configs, mcp.ProviderOptions{
			ControlPlanes: []string{"spiffe://example.org/ns/istio-system/sa/istiod"}, // of those whom ads.Options.Proxy has verified
		})},
		Limits: ads.Limits{Types: 100}, // a control plane asks for many
	})
	grpcServer := grpc.NewServer()
	server.Register(grpcServer)

	fmt.Println(len(grpcServer.GetServiceInfo()), "service")
	// Output: 1 service
}
