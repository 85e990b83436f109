// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"
)

// unusedPolicy adds findings for settings of a traffic policy that have no effect, or none at
// gateways.
func (f *findings) unusedPolicy(r *destinationRule, field string, p *networking.TrafficPolicy) {
	if p.GetTunnel() != nil {
		f.add(field+".tunnel", "no TCP proxy tunnels connections: those of sidecars are the program's, and gateways send connections as they are")
	}
	f.passedBalancer(r, field, p.GetLoadBalancer())
	for i, port := range p.GetPortLevelSettings() {
		f.passedBalancer(r, element(field+".portLevelSettings", i), port.GetLoadBalancer())
	}
}

// passedBalancer adds a finding for the load balancing PASSTHROUGH of hosts that gateways route to,
// because the original destination of a gateway's connection is the gateway itself.
func (f *findings) passedBalancer(r *destinationRule, field string, b *networking.LoadBalancerSettings) {
	if b.GetSimple() != networking.LoadBalancerSettings_PASSTHROUGH {
		return
	}
	for _, v := range f.virtualServices {
		if !v.boundToGateway() || !r.visibility.in(v.namespace) {
			continue
		}
		for host := range f.destinationsOf(v) {
			if host == r.host || host.SubsetOf(r.host) {
				f.add(field+".loadBalancer.simple", "gateways cannot: PASSTHROUGH is to where a client connects, which is the gateway itself, and VirtualService %s routes to %s there",
					v, host)
				return
			}
		}
	}
}

// boundToGateway reports whether a VirtualService is bound to some Gateway.
func (v *virtualService) boundToGateway() bool {
	for _, g := range v.gateways {
		if g != meshGateway {
			return true
		}
	}
	return false
}
