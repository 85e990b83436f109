// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"

	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// gatewayLabel names the Gateway of Kubernetes that a router belongs to.
const gatewayLabel = "gateway.networking.k8s.io/gateway-name"

// policyTarget is what a policy is for. It is immutable.
type policyTarget struct {
	selector registry.Labels
	// targets are the objects that it is for; none: workloads, by the selector.
	targets []*typev1beta1.PolicyTargetReference
}

// targeted are the kinds that say what they are for in the same fields.
type targeted interface {
	GetSelector() *typev1beta1.WorkloadSelector
	GetTargetRef() *typev1beta1.PolicyTargetReference
	GetTargetRefs() []*typev1beta1.PolicyTargetReference
}

// newPolicyTarget returns what the spec of a policy is for. If that cannot be read it is for all workloads that it can be for.
func newPolicyTarget(spec targeted, unread []configstore.Violation) policyTarget {
	if istio.SelectionUnread(unread) {
		return policyTarget{}
	}
	out := policyTarget{selector: spec.GetSelector().GetMatchLabels()}
	if r := spec.GetTargetRef(); r != nil {
		out.targets = append(out.targets, r)
	}
	out.targets = append(out.targets, spec.GetTargetRefs()...)
	return out
}

// isGateway reports whether a reference is to a Gateway of Kubernetes.
func isGateway(r *typev1beta1.PolicyTargetReference) bool {
	return r.GetGroup() == "gateway.networking.k8s.io" && r.GetKind() == "Gateway"
}

// concerns reports whether the policy of a namespace counts for a proxy; root is the namespace whose policies
// count everywhere.
func (t *policyTarget) concerns(namespace string, p *proxy, root string) bool {
	if namespace != p.namespace && namespace != root {
		return false
	}
	if len(t.targets) == 0 {
		return t.selector.SubsetOf(p.labels)
	}
	gateway := p.labels[gatewayLabel]
	return gateway != "" && namespace == p.namespace && slices.ContainsFunc(t.targets, func(r *typev1beta1.PolicyTargetReference) bool {
		return isGateway(r) && r.GetName() == gateway
	})
}

// labelKeys are those of the labels that it looks at.
func (t *policyTarget) labelKeys() []string {
	if len(t.targets) > 0 {
		return []string{gatewayLabel}
	}
	return slices.Collect(maps.Keys(t.selector))
}
