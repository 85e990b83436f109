// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// The host fills a registry.
func Example() {
	reg := memory.New(memory.Options{Cluster: "east"})
	shop := &registry.Service{
		Hostname:   "shop.example.com",
		Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Namespace: "retail"},
	}
	err := reg.Set(shop, []*registry.Endpoint{
		{Addresses: []string{"10.0.0.2"}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http"},
		{Addresses: []string{"10.0.0.1"}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range reg.InstancesByPort(reg.GetService("shop.example.com"), 80) {
		fmt.Println(i.Service.Hostname, i.Endpoint.Address(), i.Endpoint.EndpointPort)
	}
	// Output:
	// shop.example.com 10.0.0.1 8080
	// shop.example.com 10.0.0.2 8080
}

// A handler first gets the existing services, then the changes.
func ExampleRegistry_SubscribeServices() {
	reg := memory.New(memory.Options{})
	set := func(hostname registry.Hostname, port uint32) {
		err := reg.SetService(&registry.Service{Hostname: hostname, Ports: []*registry.Port{{Name: "http", Number: port}}})
		if err != nil {
			fmt.Println(err)
		}
	}
	set("a.example.com", 80)
	cancel := reg.SubscribeServices(func(_, curr *registry.Service, event registry.Event) {
		fmt.Println(event, curr.Hostname, curr.Ports[0].Number)
	})
	set("b.example.com", 80)
	set("b.example.com", 80) // changes nothing
	set("a.example.com", 8080)
	cancel()
	set("c.example.com", 80)
	// Output:
	// add a.example.com 80
	// add b.example.com 80
	// update a.example.com 8080
}

// Changing one endpoint costs the work of one endpoint.
func ExampleRegistry_ChangeEndpoints() {
	reg := memory.New(memory.Options{})
	if err := reg.SetService(&registry.Service{Hostname: "a.example.com", Ports: []*registry.Port{{Number: 80}}}); err != nil {
		fmt.Println(err)
	}
	at := func(address string) *registry.Endpoint {
		return &registry.Endpoint{Addresses: []string{address}, EndpointPort: 80, ServicePort: 80}
	}
	if err := reg.AddEndpoint("a.example.com", "", at("10.0.0.1")); err != nil {
		fmt.Println(err)
	}
	err := reg.ChangeEndpoints("a.example.com", "", []xdsupdate.EndpointChange{
		{Old: at("10.0.0.1"), New: at("10.0.0.7")}, {New: at("10.0.0.2")},
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, i := range reg.InstancesByPort(reg.GetService("a.example.com"), 0) {
		fmt.Println(i.Endpoint.Address())
	}
	fmt.Println(reg.RemoveEndpoint("a.example.com", "", at("10.0.0.1")))
	// Output:
	// 10.0.0.2
	// 10.0.0.7
	// change endpoints of service a.example.com: unknown endpoint: 10.0.0.1 port 80
}
