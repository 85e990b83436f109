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

// gatewayLabel is the label of a router with the name of its Kubernetes Gateway.
const gatewayLabel = "gateway.networking.k8s.io/gateway-name"

// policyTarget selects the workloads that a policy applies to. It is immutable.
type policyTarget struct {
	selector registry.Labels
	// targets are the targetRefs of the policy. Without any, the selector applies.
	targets []*typev1beta1.PolicyTargetReference
}

// targeted is implemented by the specs of policies with a selector and targetRefs.
type targeted interface {
	GetSelector() *typev1beta1.WorkloadSelector
	GetTargetRef() *typev1beta1.PolicyTargetReference
	GetTargetRefs() []*typev1beta1.PolicyTargetReference
}

// newPolicyTarget returns the target of a policy. If it is unreadable, the policy applies to all
// workloads in its reach.
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

// isGateway reports whether a reference is to a Kubernetes Gateway.
func isGateway(r *typev1beta1.PolicyTargetReference) bool {
	return r.GetGroup() == "gateway.networking.k8s.io" && r.GetKind() == "Gateway"
}

// concerns reports whether the policy of a namespace applies to a proxy. Policies of the namespace
// root apply to all namespaces.
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

// labelKeys returns the keys of the labels that the target depends on.
func (t *policyTarget) labelKeys() []string {
	if len(t.targets) > 0 {
		return []string{gatewayLabel}
	}
	return slices.Collect(maps.Keys(t.selector))
}

// reach returns the namespace of the workloads that policies of a namespace can apply to. It is
// empty for policies of the root namespace, which apply to all namespaces.
func (x *index) reach(namespace string) string {
	if namespace == x.settings.rootNamespace() {
		return ""
	}
	return namespace
}
