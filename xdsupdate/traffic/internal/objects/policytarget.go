// SPDX-License-Identifier: Apache-2.0

package objects

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

// PolicyTarget selects the workloads that a policy applies to. It is immutable.
type PolicyTarget struct {
	Selector registry.Labels
	// Targets are the targetRefs of the policy. Without any, the selector applies.
	Targets []*typev1beta1.PolicyTargetReference
}

// targeted is implemented by the specs of policies with a selector and targetRefs.
type targeted interface {
	GetSelector() *typev1beta1.WorkloadSelector
	GetTargetRef() *typev1beta1.PolicyTargetReference
	GetTargetRefs() []*typev1beta1.PolicyTargetReference
}

// newPolicyTarget returns the target of a policy. If it is unreadable, the policy applies to all
// workloads in its reach.
func newPolicyTarget(spec targeted, unread []configstore.Violation) PolicyTarget {
	if istio.SelectionUnread(unread) {
		return PolicyTarget{}
	}
	out := PolicyTarget{Selector: spec.GetSelector().GetMatchLabels()}
	if r := spec.GetTargetRef(); r != nil {
		out.Targets = append(out.Targets, r)
	}
	out.Targets = append(out.Targets, spec.GetTargetRefs()...)
	return out
}

// IsGateway reports whether a reference is to a Kubernetes Gateway.
func IsGateway(r *typev1beta1.PolicyTargetReference) bool {
	return r.GetGroup() == "gateway.networking.k8s.io" && r.GetKind() == "Gateway"
}

// Concerns reports whether the policy of a namespace applies to a proxy. Policies of the namespace
// root apply to all namespaces.
func (t *PolicyTarget) Concerns(namespace string, p *Proxy, root string) bool {
	if namespace != p.Namespace && namespace != root {
		return false
	}
	if len(t.Targets) == 0 {
		return t.Selector.SubsetOf(p.Labels)
	}
	gateway := p.Labels[gatewayLabel]
	return gateway != "" && namespace == p.Namespace && slices.ContainsFunc(t.Targets, func(r *typev1beta1.PolicyTargetReference) bool {
		return IsGateway(r) && r.GetName() == gateway
	})
}

// labelKeys returns the keys of the labels that the target depends on.
func (t *PolicyTarget) labelKeys() []string {
	if len(t.Targets) > 0 {
		return []string{gatewayLabel}
	}
	return slices.Collect(maps.Keys(t.Selector))
}

// Reach returns the namespace of the workloads that policies of a namespace can apply to. It is
// empty for policies of the root namespace, which apply to all namespaces.
func (x *Index) Reach(namespace string) string {
	if namespace == x.Settings.RootNamespace() {
		return ""
	}
	return namespace
}
