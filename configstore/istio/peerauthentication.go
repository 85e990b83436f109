// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"maps"
	"slices"
	"strconv"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// peerAuthenticationRules are the rules for a PeerAuthentication.
func peerAuthenticationRules(spec *field, _ configstore.Config, policy *security.PeerAuthentication) {
	checkPolicySelector(spec.child("selector"), policy.Selector)
	checkEnum(spec.child("mtls").child("mode"), policy.GetMtls().GetMode())
	if policy.PortLevelMtls != nil && len(policy.PortLevelMtls) == 0 {
		spec.child("portLevelMtls").refuse("must not be empty")
	}
	if len(policy.PortLevelMtls) > 0 && len(policy.GetSelector().GetMatchLabels()) == 0 {
		spec.child("portLevelMtls").refuse("must not be set without a selector")
	}
	for _, port := range slices.Sorted(maps.Keys(policy.PortLevelMtls)) {
		at := spec.entry("portLevelMtls", strconv.FormatUint(uint64(port), 10))
		if port < 1 || port > maxPort {
			at.refuse("key must be 1–65535, is %d", port)
		}
		checkEnum(at.child("mode"), policy.PortLevelMtls[port].GetMode())
	}
}
