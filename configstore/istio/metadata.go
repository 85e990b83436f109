// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"

	"istio.io/api/annotation"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// Annotations that Istio 1.30 keeps to itself.
const (
	// alwaysRejectAnnotation asks for a refusal; it probes whether validation is
	// in force.
	alwaysRejectAnnotation = "internal.istio.io/webhook-always-reject"
	// parentsAnnotation and parentNamespaceAnnotation mark objects that Istio
	// derives from others.
	parentsAnnotation         = "internal.istio.io/parents"
	parentNamespaceAnnotation = "internal.istio.io/parent-namespace"
	// These mark, with the value "gateway", the Gateways and VirtualServices that
	// Istio derives from the Kubernetes Gateway API.
	gatewaySemanticsAnnotation = "internal.istio.io/gateway-semantics"
	routeSemanticsAnnotation   = "internal.istio.io/route-semantics"
	gatewaySemantics           = "gateway"
)

// checkMetadata holds the rules for the metadata of every kind.
func checkMetadata(at *field, c configstore.Config) {
	if len(c.Annotations) == 0 {
		return
	}
	if _, ok := c.Annotations[alwaysRejectAnnotation]; ok {
		at.entry("annotations", alwaysRejectAnnotation).refuse("asks for a refusal")
	}
	for _, reserved := range []string{parentsAnnotation, parentNamespaceAnnotation} {
		if _, ok := c.Annotations[reserved]; ok {
			at.entry("annotations", reserved).refuse("is reserved for objects that Istio derives")
		}
	}
	if value, ok := c.Annotations[annotation.IoIstioDryRun.Name]; ok {
		checkDryRun(at.entry("annotations", annotation.IoIstioDryRun.Name), c, value)
	}
}

// checkDryRun checks the annotation that has a policy evaluated without being
// enforced.
func checkDryRun(at *field, c configstore.Config, value string) {
	policy, ok := c.Spec.(*security.AuthorizationPolicy)
	switch {
	case !ok:
		at.refuse("is for AuthorizationPolicy only, not for %s", c.GroupVersionKind.Kind)
	case policy.GetAction() != security.AuthorizationPolicy_ALLOW && policy.GetAction() != security.AuthorizationPolicy_DENY:
		at.refuse("is for the actions ALLOW and DENY only, not for %s", policy.GetAction())
	}
	if _, err := strconv.ParseBool(value); err != nil {
		at.refuse("must be true or false, is %q", value)
	}
}
