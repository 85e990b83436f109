// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"

	apitype "istio.io/api/type/v1beta1"
)

// maxTargetRefs is the limit of istio.io/api.
const maxTargetRefs = 16

// checkPolicyTarget checks the target of a policy: a selector, or references to objects, or
// neither. ref is the hidden predecessor of refs.
func checkPolicyTarget(spec *field, selector *apitype.WorkloadSelector, ref *apitype.PolicyTargetReference, refs []*apitype.PolicyTargetReference) {
	checkPolicySelector(spec.child("selector"), selector)
	checkTargetRefs(spec, selector != nil, "selector", ref, refs)
}

// checkTargetRefs checks references to objects; selector is the name of the
// field that excludes them, and selected whether it is set.
func checkTargetRefs(spec *field, selected bool, selector string, ref *apitype.PolicyTargetReference, refs []*apitype.PolicyTargetReference) {
	if selected && (ref != nil || len(refs) > 0) {
		spec.child("targetRefs").refuse("must not be set together with %s", selector)
	}
	if ref != nil {
		if len(refs) > 0 {
			spec.child("targetRef").refuse("must not be set together with targetRefs")
		}
		checkTargetRef(spec.child("targetRef"), ref)
	}
	if len(refs) > maxTargetRefs {
		spec.child("targetRefs").refuse("must have at most %d elements, has %d", maxTargetRefs, len(refs))
	}
	for at, ref := range elements(spec, "targetRefs", refs) {
		checkTargetRef(at, ref)
	}
}

func checkTargetRef(at *field, ref *apitype.PolicyTargetReference) {
	checkDNSName(at.child("name"), ref.Name)
	if ref.Namespace != "" {
		at.child("namespace").refuse("must be empty: references stay within their namespace, is %q", ref.Namespace)
	}
	if ref.Kind == "" {
		at.child("kind").refuse("is required")
		return
	}
	switch kind := fmt.Sprintf("%s/%s", ref.Group, ref.Kind); kind {
	case "gateway.networking.k8s.io/Gateway", "gateway.networking.k8s.io/GatewayClass",
		"/Service", "core/Service", networkingGroup + "/ServiceEntry":
	default:
		at.refuse("must be a Gateway or GatewayClass of gateway.networking.k8s.io, a Service, or a ServiceEntry of %s, is %q", networkingGroup, kind)
	}
}
