// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// DryRunAnnotation of an AuthorizationPolicy says whether the policy is in dry-run mode.
const DryRunAnnotation = "istio.io/dry-run"

// AuthorizationPolicy is an AuthorizationPolicy. It is immutable except for its cached
// translations. With unreadable parts it allows nothing, or denies everything.
type AuthorizationPolicy struct {
	Stored
	PolicyTarget
	Spec         *security.AuthorizationPolicy
	DryRun       bool
	translations rbac.Translations
}

func newAuthorizationPolicy(c *configstore.Config, spec *security.AuthorizationPolicy) *AuthorizationPolicy {
	dryRun, _ := strconv.ParseBool(c.Annotations[DryRunAnnotation]) // an invalid value means that the policy is enforced
	base := newPolicy(c)
	if istio.ActionUnread(base.Unread) {
		spec = proto.CloneOf(spec)
		spec.Action = security.AuthorizationPolicy_DENY
	}
	return &AuthorizationPolicy{
		Stored: base, PolicyTarget: newPolicyTarget(spec, base.Unread), Spec: spec, DryRun: dryRun,
	}
}

// Selects reports whether the policy applies to workloads with some labels. A policy with
// targetRefs applies to none.
func (a *AuthorizationPolicy) Selects(labels registry.Labels) bool {
	return len(a.Targets) == 0 && a.Selector.SubsetOf(labels)
}

// Policy returns the policy in the form that package rbac translates.
func (a *AuthorizationPolicy) Policy() rbac.Policy {
	return rbac.Policy{Namespace: a.Namespace, Name: a.Name, Spec: a.Spec, DryRun: a.DryRun, Closed: len(a.Unread) > 0, Kept: &a.translations}
}

// fields returns the fields of the rules whose sources or conditions are accepted.
func (a *AuthorizationPolicy) fields(source func(*security.Source) bool, condition func(key string) bool) (out []string) {
	for i, rule := range a.Spec.GetRules() {
		at := Element("spec.rules", i)
		for j, from := range rule.GetFrom() {
			if source(from.GetSource()) {
				out = append(out, Element(at+".from", j)+".source")
			}
		}
		for j, c := range rule.GetWhen() {
			if condition(c.GetKey()) {
				out = append(out, Element(at+".when", j))
			}
		}
	}
	return out
}

// TokenFields returns the fields that depend on token content.
func (a *AuthorizationPolicy) TokenFields() []string {
	return a.fields(
		func(s *security.Source) bool {
			return len(s.GetRequestPrincipals())+len(s.GetNotRequestPrincipals()) > 0
		},
		func(key string) bool { return strings.HasPrefix(key, "request.auth.") })
}

// IdentityField returns the first field that depends on client identities, or "".
func (a *AuthorizationPolicy) IdentityField() string {
	fields := a.fields(func(s *security.Source) bool {
		return len(slices.Concat(s.GetPrincipals(), s.GetNotPrincipals(), s.GetNamespaces(), s.GetNotNamespaces(),
			s.GetServiceAccounts(), s.GetNotServiceAccounts(), s.GetTrustDomains(), s.GetNotTrustDomains())) > 0
	}, func(key string) bool {
		return slices.Contains([]string{"source.principal", "source.namespace", "source.serviceAccount", "source.trustDomain"}, key)
	})
	return append(fields, "")[0]
}

// AuthorizationPoliciesOf returns the policies that apply to a proxy: the policies of the root
// namespace, then those in its own namespace, each group from the oldest to the newest.
func (x *Index) AuthorizationPoliciesOf(p *Proxy) (out []*AuthorizationPolicy) {
	for _, a := range x.AuthorizationPoliciesIn(p.Namespace) {
		if a.Concerns(a.Namespace, p, x.Settings.RootNamespace()) {
			out = append(out, a)
		}
	}
	return out
}

// AuthorizationPoliciesIn returns the policies that can apply to workloads of a namespace, in the
// order of AuthorizationPoliciesOf.
func (x *Index) AuthorizationPoliciesIn(namespace string) (out []*AuthorizationPolicy) {
	root := x.Settings.RootNamespace()
	if out = x.authorizations.In(root); namespace != root {
		out = slices.Concat(out, x.authorizations.In(namespace))
	}
	return out
}

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
