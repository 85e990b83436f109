// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"time"

	commondns "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/registry"
)

const (
	// dnsRefreshRate is Istio 1.30's default.
	dnsRefreshRate = 60 * time.Second
	// dnsJitter spreads the DNS queries of many Envoys that start at the same time.
	dnsJitter = 100 * time.Millisecond
)

// dns returns the settings of DNS clusters. If logical is set, all addresses of the name belong to
// one endpoint, like LOGICAL_DNS. Otherwise each address is an endpoint, like STRICT_DNS.
func (u *Upstream) dns(logical bool) *dnsv3.DnsCluster {
	out := &dnsv3.DnsCluster{
		DnsRefreshRate: positive(u.Mesh.GetDnsRefreshRate()), RespectDnsTtl: true, DnsJitter: durationpb.New(dnsJitter),
		DnsLookupFamily: lookupFamily(u.Proxy), AllAddressesInSingleEndpoint: logical,
	}
	if out.DnsRefreshRate == nil {
		out.DnsRefreshRate = durationpb.New(dnsRefreshRate)
	}
	return out
}

// lookupFamily returns the address families that a proxy can connect to, based on its own
// addresses.
func lookupFamily(p *registry.Proxy) commondns.DnsLookupFamily {
	v4, v6 := false, false
	if p != nil {
		for _, a := range p.IPAddresses {
			if addr, err := netip.ParseAddr(a); err == nil {
				v4, v6 = v4 || addr.Unmap().Is4(), v6 || addr.Unmap().Is6()
			}
		}
	}
	switch {
	case v4 && v6:
		return commondns.DnsLookupFamily_ALL
	case v6:
		return commondns.DnsLookupFamily_V6_ONLY
	case v4:
		return commondns.DnsLookupFamily_V4_ONLY
	default:
		return commondns.DnsLookupFamily_V4_PREFERRED
	}
}
