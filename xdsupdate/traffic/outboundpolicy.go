// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// allowsUnknown reports whether the mesh lets requests to unknown hosts go where they
// want to. ALLOW_ANY_DYNAMIC_DNS allows them, too; but with TLS that only a cluster
// which looks hosts up could add, they are blocked rather than sent in plain text. A
// mode that is not known is not taken for permission.
func (s *settings) allowsUnknown() bool {
	policy := s.mesh.GetOutboundTrafficPolicy()
	switch policy.GetMode() {
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY:
		return true
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		return policy.GetTls() == nil
	default:
		return false
	}
}

// outboundPolicy finds a mode of a Sidecar that is not known.
func (f *findings) outboundPolicy(s *sidecar) {
	mode := s.spec.GetOutboundTrafficPolicy().GetMode()
	if networking.OutboundTrafficPolicy_Mode_name[int32(mode)] == "" {
		f.add("spec.outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
}
