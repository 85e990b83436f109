// SPDX-License-Identifier: Apache-2.0

package traffic

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

// dryRunAnnotation of an AuthorizationPolicy says whether the policy is in dry-run mode.
const dryRunAnnotation = "istio.io/dry-run"

// authorizationPolicy is an AuthorizationPolicy. It is immutable except for its cached
// translations. With unreadable parts it allows nothing, or denies everything.
type authorizationPolicy struct {
	stored
	policyTarget
	spec         *security.AuthorizationPolicy
	dryRun       bool
	translations rbac.Translations
}

func newAuthorizationPolicy(c *configstore.Config, spec *security.AuthorizationPolicy) *authorizationPolicy {
	dryRun, _ := strconv.ParseBool(c.Annotations[dryRunAnnotation]) // an invalid value means that the policy is enforced
	base := newPolicy(c)
	if istio.ActionUnread(base.unread) {
		spec = proto.CloneOf(spec)
		spec.Action = security.AuthorizationPolicy_DENY
	}
	return &authorizationPolicy{
		stored: base, policyTarget: newPolicyTarget(spec, base.unread), spec: spec, dryRun: dryRun,
	}
}

// selects reports whether the policy applies to workloads with some labels. A policy with
// targetRefs applies to none.
func (a *authorizationPolicy) selects(labels registry.Labels) bool {
	return len(a.targets) == 0 && a.selector.SubsetOf(labels)
}

// policy returns the policy in the form that package rbac translates.
func (a *authorizationPolicy) policy() rbac.Policy {
	return rbac.Policy{Namespace: a.namespace, Name: a.name, Spec: a.spec, DryRun: a.dryRun, Closed: len(a.unread) > 0, Kept: &a.translations}
}

// authorizationPoliciesOf returns the policies that apply to a proxy: the policies of the root
// namespace, then those in its own namespace, each group from the oldest to the newest.
func (x *index) authorizationPoliciesOf(p *proxy) (out []*authorizationPolicy) {
	for _, a := range x.authorizationPoliciesIn(p.namespace) {
		if a.concerns(a.namespace, p, x.settings.rootNamespace()) {
			out = append(out, a)
		}
	}
	return out
}

// authorizationPoliciesIn returns the policies that can apply to workloads of a namespace, in the
// order of authorizationPoliciesOf.
func (x *index) authorizationPoliciesIn(namespace string) (out []*authorizationPolicy) {
	root := x.settings.rootNamespace()
	if out = x.authorizations.in(root); namespace != root {
		out = slices.Concat(out, x.authorizations.in(namespace))
	}
	return out
}
