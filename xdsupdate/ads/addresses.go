// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"net/netip"

	"github.com/pilotkit/pilotkit/registry"
)

// Addresses says which addresses of services a proxy can use. It is comparable. The
// zero value is a proxy of which nothing is known.
type Addresses struct {
	// IPv4 and IPv6: the proxy has addresses of this family. Neither: unknown, which
	// counts as both.
	IPv4, IPv6 bool
	// Allocated: the proxy answers the DNS queries of its application with
	// automatically allocated addresses.
	Allocated bool
}

// addressesOf returns what a proxy can use.
func addressesOf(proxy *registry.Proxy) Addresses {
	a := Addresses{Allocated: proxy.DNSCapture && proxy.DNSAutoAllocate}
	for _, text := range proxy.IPAddresses {
		if parsed, err := netip.ParseAddr(text); err == nil {
			four := parsed.Unmap().Is4()
			a.IPv4, a.IPv6 = a.IPv4 || four, a.IPv6 || !four
		}
	}
	return a
}

// ServiceAddresses returns the addresses under which the proxies of the view reach a
// service, by the rules of registry.Service.AddressesFor.
func (v View) ServiceAddresses(svc *registry.Service) []string {
	proxy := registry.Proxy{ClusterID: v.Cluster, DNSCapture: v.Addresses.Allocated, DNSAutoAllocate: v.Addresses.Allocated}
	if v.Addresses.IPv4 {
		proxy.IPAddresses = append(proxy.IPAddresses, "0.0.0.0")
	}
	if v.Addresses.IPv6 {
		proxy.IPAddresses = append(proxy.IPAddresses, "::")
	}
	return svc.AddressesFor(&proxy)
}
