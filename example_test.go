// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"fmt"

	"google.golang.org/grpc"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// A control plane in a dozen lines: a store, a registry that reads it, and a
// server that serves what the registry knows. Drain takes the place of Run in
// tests: when it returns, everything that was written has had its effect.
func Example() {
	store := memory.Make(istio.Schemas())
	configs := memory.NewController(store)
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(configs)}})
	server.Register(grpc.NewServer(ads.ServerOptions()...)) // and go server.Run(stop)
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(configs, updater)
	})

	entries := configstore.Typed[*networking.ServiceEntry](store)
	_, err := entries.Create(configstore.NewConfig("db", "prod", &networking.ServiceEntry{
		Hosts:      []string{"db.example.com"},
		Ports:      []*networking.ServicePort{{Number: 5432, Name: "tcp", Protocol: "TCP"}},
		Resolution: networking.ServiceEntry_STATIC,
		Addresses:  []string{"240.0.0.1"},
		Endpoints:  []*networking.WorkloadEntry{{Address: "10.0.0.1"}, {Address: "10.0.0.2"}},
	}))
	configs.Drain()

	service := registries.GetService("db.example.com")
	fmt.Println(err, service.Hostname, service.Resolution)
	for _, i := range registries.InstancesByPort(service, 5432) {
		fmt.Printf("%s:%d\n", i.Endpoint.Address(), i.Endpoint.EndpointPort)
	}
	// Output:
	// <nil> db.example.com ClientSide
	// 10.0.0.1:5432
	// 10.0.0.2:5432
}
