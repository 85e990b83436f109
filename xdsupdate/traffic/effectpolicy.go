// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"
)

// unusedPolicies adds findings for settings of the traffic policies of a rule that have no effect, or
// none at gateways.
func (f *findings) unusedPolicies(r *destinationRule) {
	for _, p := range r.policies() {
		f.credentials(p.field+".tls.credentialName", p.GetTls().GetCredentialName())
		if whole, ok := p.policyLevel.(*networking.TrafficPolicy); ok && whole.GetTunnel() != nil {
			f.add(p.field+".tunnel", "no TCP proxy tunnels connections: those of sidecars are the program's, and gateways send connections as they are")
		}
		if passesThrough(p.GetLoadBalancer()) {
			f.passedOn(r, p.field)
		}
	}
}

// passedOn adds a finding for the load balancing PASSTHROUGH of hosts that gateways route to,
// because the original destination of a gateway's connection is the gateway itself.
func (f *findings) passedOn(r *destinationRule, field string) {
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
