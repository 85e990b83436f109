// SPDX-License-Identifier: Apache-2.0

package services

import (
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View is what in a proxy makes a difference to the resources of services.
type View struct {
	Namespace string
	Cluster   registry.ClusterID
	Client    envoy.Client
	Addresses Addresses
	// Scope returns what the Customizer makes a difference of between views, for the
	// resources of a type of a port; nil: nothing.
	Scope func(typeURL string, service *registry.Service, port *registry.Port) (any, error)
}

// Addresses says which addresses of services a proxy can use. Neither family: unknown,
// which counts as both.
type Addresses struct {
	IPv4, IPv6 bool
	// Allocated: the proxy answers DNS queries with automatically allocated addresses.
	Allocated bool
}

// AddressesOf returns the addresses under which the proxies of the view reach a service.
func (v View) AddressesOf(svc *registry.Service) []string {
	proxy := registry.Proxy{ClusterID: v.Cluster, DNSCapture: v.Addresses.Allocated, DNSAutoAllocate: v.Addresses.Allocated}
	if v.Addresses.IPv4 {
		proxy.IPAddresses = append(proxy.IPAddresses, "0.0.0.0")
	}
	if v.Addresses.IPv6 {
		proxy.IPAddresses = append(proxy.IPAddresses, "::")
	}
	return svc.AddressesFor(&proxy)
}

// Customizer is what the program does to the resources of a port of a service before they
// are encoded.
type Customizer interface {
	// Changes reports whether there is something for a type.
	Changes(typeURL string) bool
	// Customize changes the message, for views of which View.Scope is this.
	Customize(typeURL string, scope any, service *registry.Service, port *registry.Port, m proto.Message) error
}
