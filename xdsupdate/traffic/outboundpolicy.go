// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
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

// meshKind stands for the mesh configuration among findings. It is no kind of a store.
func meshKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "mesh.istio.io", Version: "v1alpha1", Kind: "MeshConfig"}
}

// meshConfig finds what of the mesh configuration is not done as it says.
func (f *findings) meshConfig() {
	f.kind, f.name = meshKind(), objectName{f.settings.rootNamespace(), "mesh"}
	policy := f.settings.mesh.GetOutboundTrafficPolicy()
	switch mode := policy.GetMode(); {
	case mode == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS && policy.GetTls() != nil:
		f.add("outboundTrafficPolicy.tls", "hosts are not looked up for each request, so that requests to unknown hosts cannot have TLS and are blocked")
	case mode == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		f.add("outboundTrafficPolicy.mode", "hosts are not looked up for each request: requests to unknown hosts go to their original addresses, as by ALLOW_ANY")
	case meshconfig.MeshConfig_OutboundTrafficPolicy_Mode_name[int32(mode)] == "":
		f.add("outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
}

// outboundPolicy finds a mode of a Sidecar that is not known.
func (f *findings) outboundPolicy(s *sidecar) {
	mode := s.spec.GetOutboundTrafficPolicy().GetMode()
	if networking.OutboundTrafficPolicy_Mode_name[int32(mode)] == "" {
		f.add("spec.outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
}
