// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/netip"
	"slices"
)

// AddressesFor returns the addresses under which a proxy reaches the service, by
// the rules of Istio 1.30:
//
//   - the service's addresses in the proxy's cluster that are of one of the
//     proxy's IP families; else
//   - if the service declares no address, and the proxy answers DNS queries and
//     knows automatically allocated addresses, that of the proxy's IP family, IPv4
//     first; else
//   - DefaultAddress.
//
// It is never empty.
func (s *Service) AddressesFor(p *Proxy) []string {
	v4, v6 := p.families()
	if p.ClusterID != "" {
		own := slices.DeleteFunc(slices.Clone(s.ClusterVIPs[p.ClusterID]), func(address string) bool {
			a, err := netip.ParseAddr(address)
			return err == nil && (a.Unmap().Is4() && !v4 || a.Unmap().Is6() && !v6)
		})
		if len(own) > 0 {
			return own
		}
	}
	if s.DefaultAddress == UnspecifiedAddress && p.DNSCapture && p.DNSAutoAllocate {
		switch {
		case v4 && s.AutoAllocatedIPv4 != "":
			return []string{s.AutoAllocatedIPv4}
		case v6 && s.AutoAllocatedIPv6 != "":
			return []string{s.AutoAllocatedIPv6}
		}
	}
	return []string{s.DefaultAddress}
}

// families reports the IP families of the proxy's addresses; both if it has none.
func (p *Proxy) families() (v4, v6 bool) {
	for _, address := range p.IPAddresses {
		if a, err := netip.ParseAddr(address); err == nil {
			v4, v6 = v4 || a.Unmap().Is4(), v6 || a.Unmap().Is6()
		}
	}
	if !v4 && !v6 {
		return true, true
	}
	return v4, v6
}
