// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// unusedPolicies adds findings for settings of the traffic policies of a rule that have no effect, or
// none at gateways.
func (f *findings) unusedPolicies(r *objects.DestinationRule) {
	for _, p := range r.Policies() {
		f.credentials(p.Field+".tls.credentialName", p.GetTls().GetCredentialName())
		if whole, ok := p.PolicyLevel.(*networking.TrafficPolicy); ok && whole.GetTunnel() != nil {
			f.add(p.Field+".tunnel", "no TCP proxy tunnels connections: those of sidecars are the program's, and gateways send connections as they are")
		}
		if objects.PassesThrough(p.GetLoadBalancer()) {
			f.passedOn(r, p.Field)
		}
	}
}

// passedOn adds a finding for the load balancing PASSTHROUGH of hosts that gateways route to,
// because the original destination of a gateway's connection is the gateway itself.
func (f *findings) passedOn(r *objects.DestinationRule, field string) {
	for _, v := range f.VirtualServices {
		if !v.BoundToGateway() || !r.Visibility.In(v.Namespace) {
			continue
		}
		for host := range f.DestinationsOf(v) {
			if host == r.Host || host.SubsetOf(r.Host) {
				f.add(field+".loadBalancer.simple", "gateways cannot: PASSTHROUGH is to where a client connects, which is the gateway itself, and VirtualService %s routes to %s there",
					v, host)
				return
			}
		}
	}
}
