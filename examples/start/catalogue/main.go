// SPDX-License-Identifier: Apache-2.0

// Command catalogue is a control plane for the services of a foreign catalogue. Without arguments it
// shows the services that clients receive while the catalogue is down, lies and comes back; with an
// address it serves xDS there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// inventory is a catalogue: here a list in memory, in your program a client of a database or an API.
type inventory struct {
	services map[string][]string // addresses by host name
	err      error
}

// List returns everything, or an error. A partial result must be an error.
func (i *inventory) List(context.Context) (bridge.Listing, error) {
	var out bridge.Listing
	for host, addresses := range i.services {
		r := bridge.Record{Service: &registry.Service{
			Hostname:   registry.Hostname(host),
			Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
			Attributes: registry.ServiceAttributes{Namespace: "shop"},
		}}
		for _, address := range addresses {
			r.Endpoints = append(r.Endpoints, &registry.Endpoint{
				Addresses: []string{address}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http",
			})
		}
		out.Records = append(out.Records, r)
	}
	return out, i.err
}

func main() {
	catalogue := &inventory{services: map[string][]string{"cart.example.com": {"10.0.0.1", "10.0.0.2"}, "pay.example.com": {"10.0.0.3"}}}
	registries := aggregate.NewController()
	server := ads.New(registries)
	var services *bridge.Bridge
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		services = bridge.New(catalogue, bridge.Options{Provider: "Inventory", Updater: updater})
		return services
	})
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if len(os.Args) == 2 {
		fmt.Println(serve(ctx, os.Args[1], registries, server))
		return
	}
	show := func(what string) {
		fmt.Printf("%s: %v\n", what, services.Sync(ctx))
		cart := registries.GetService("cart.example.com")
		for _, i := range registries.InstancesByPort(cart, 80) {
			fmt.Printf("  cart at %s:%d\n", i.Endpoint.Address(), i.Endpoint.EndpointPort)
		}
	}
	show("a first list")
	good := catalogue.services
	catalogue.services, catalogue.err = nil, errors.New("connection refused")
	show("the catalogue is down")
	catalogue.err = nil
	show("it has lost its content")
	catalogue.services = good
	good["cart.example.com"] = []string{"10.0.0.2", "10.0.0.4"}
	show("it is back")
}
