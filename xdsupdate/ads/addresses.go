// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"net/netip"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
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

// AddressesOf returns what a proxy can use.
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
	return v.ofServices().AddressesOf(svc)
}

// ofServices returns what of the view matters to the resources of services.
func (v View) ofServices() services.View {
	return services.View{Namespace: v.Namespace, Cluster: v.Cluster, Client: v.Client, Addresses: services.Addresses(v.Addresses)}
}
