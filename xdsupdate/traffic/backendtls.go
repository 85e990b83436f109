// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// policyTLS returns the TLS settings of BackendTLSPolicies for a port of a host, or nil.
func policyTLS(policies []*objects.DestinationRule, port uint32) *networking.ClientTLSSettings {
	for _, r := range policies {
		for _, at := range r.Spec.GetTrafficPolicy().GetPortLevelSettings() {
			if at.GetPort().GetNumber() == port && at.GetTls() != nil {
				return at.GetTls()
			}
		}
	}
	for _, r := range policies {
		if tls := r.Spec.GetTrafficPolicy().GetTls(); tls != nil {
			return tls
		}
	}
	return nil
}

// applyPolicies sets the TLS settings of BackendTLSPolicies in the policy of a cluster, unless a
// DestinationRule of a user sets TLS. A router also presents the client certificate of its Gateway
// to such servers.
func (st *state) applyPolicies(u *xdsbuild.Upstream, p *proxy, at clusterPlace) {
	policies, _ := st.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace)
	tls := policyTLS(policies, at.port.Number)
	if tls == nil || u.Policy.GetTls() != nil {
		return
	}
	if u.Policy == nil {
		u.Policy = &networking.TrafficPolicy{}
	}
	u.Policy.Tls = tls // The policy belongs to this cluster alone.
	if p.Role == objects.Router {
		u.Certificate = st.routerOf(p).certificate
	}
}
