// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
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
