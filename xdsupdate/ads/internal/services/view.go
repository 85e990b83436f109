// SPDX-License-Identifier: Apache-2.0

package services

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View has the properties of a proxy on which the resources of services depend.
type View struct {
	Namespace string
	Cluster   registry.ClusterID
	Client    envoy.Client
	Addresses Addresses
}

// Addresses are the addresses of services that a proxy can use. If neither family is set, the
// families are unknown, which counts as both.
type Addresses struct {
	IPv4, IPv6 bool
	// Allocated means that the proxy answers DNS queries with automatically allocated addresses.
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
