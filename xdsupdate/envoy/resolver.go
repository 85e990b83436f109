// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net/netip"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/registry"
)

// dnsJitter spreads the DNS queries of many Envoys that were started at once.
const dnsJitter = 100 * time.Millisecond

// setResolver sets how an Envoy asks DNS.
func (u *Upstream) setResolver(c *clusterv3.Cluster) {
	if !u.resolution().IsDNS() {
		return
	}
	c.DnsLookupFamily = lookupFamily(u.Proxy)
	c.DnsJitter = durationpb.New(dnsJitter) //nolint:staticcheck // its successor is unknown to Envoys before 1.34
	if d := positive(u.Mesh.GetDnsRefreshRate()); d != nil {
		c.DnsRefreshRate = d //nolint:staticcheck // the same
	}
}

// lookupFamily returns which addresses a proxy can connect to, by those that it has
// itself.
func lookupFamily(p *registry.Proxy) clusterv3.Cluster_DnsLookupFamily {
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
		return clusterv3.Cluster_ALL
	case v6:
		return clusterv3.Cluster_V6_ONLY
	case v4:
		return clusterv3.Cluster_V4_ONLY
	default:
		return clusterv3.Cluster_V4_PREFERRED
	}
}
