// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

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
