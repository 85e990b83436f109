// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// allowsUnknown reports whether requests to unknown hosts are forwarded to their original
// destination. ALLOW_ANY_DYNAMIC_DNS forwards them too. However, it blocks them if it demands TLS,
// because only a cluster that resolves hosts could add TLS, and plain text must not be sent
// instead. An unknown mode blocks them.
func (s *settings) allowsUnknown() bool {
	policy := s.Mesh.GetOutboundTrafficPolicy()
	switch policy.GetMode() {
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY:
		return true
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		return policy.GetTls() == nil
	default:
		return false
	}
}

// outboundPolicy adds a finding if the outbound traffic policy of a Sidecar has an unknown mode.
func (f *findings) outboundPolicy(s *objects.Sidecar) {
	mode := s.Spec.GetOutboundTrafficPolicy().GetMode()
	if networking.OutboundTrafficPolicy_Mode_name[int32(mode)] == "" {
		f.add("spec.outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
}
