// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// authorizationPolicyRules are the rules for an AuthorizationPolicy.
func authorizationPolicyRules(spec *field, _ configstore.Config, policy *security.AuthorizationPolicy) {
	checkPolicyTarget(spec, policy.Selector, policy.TargetRef, policy.TargetRefs)
	checkEnum(spec.child("action"), policy.Action)
	switch provider := policy.GetProvider(); policy.Action {
	case security.AuthorizationPolicy_CUSTOM:
		checkSet(spec.child("provider").child("name"), provider.GetName(), "is required for action CUSTOM")
		if len(policy.Rules) == 0 {
			spec.child("rules").refuse("must not be empty for action CUSTOM")
		}
	default:
		if policy.ActionDetail != nil {
			spec.child("provider").refuse("must not be set for action %s, only for CUSTOM", policy.Action)
		}
		if policy.Action == security.AuthorizationPolicy_DENY && len(policy.Rules) == 0 {
			spec.child("rules").refuse("must not be empty for action DENY, which would then deny nothing; [{}] denies everything")
		}
	}
	for at, rule := range elements(spec, "rules", policy.Rules) {
		checkRule(at, rule, policy.Action)
	}
}

func checkRule(at *field, rule *security.Rule, action security.AuthorizationPolicy_Action) {
	for i, from := range rule.From {
		if source := from.GetSource(); source == nil {
			at.elem("from", i).child("source").refuse("is required")
		} else {
			checkAuthorizationSource(at.elem("from", i).child("source"), source, action)
		}
	}
	for i, to := range rule.To {
		if operation := to.GetOperation(); operation == nil {
			at.elem("to", i).child("operation").refuse("is required")
		} else {
			checkOperation(at.elem("to", i).child("operation"), operation)
		}
	}
	for place, condition := range elements(at, "when", rule.When) {
		checkCondition(place, condition, action)
	}
	if action == security.AuthorizationPolicy_DENY && deniesTCP(rule) {
		at.warn("has only attributes of HTTP, and denies all traffic to TCP ports too; name the ports in to.operation.ports")
	}
}

// deniesTCP reports whether a rule is meant for HTTP requests, but applies to connections on TCP
// ports, too: Istio 1.30 omits conditions that cannot be evaluated for them.
func deniesTCP(rule *security.Rule) bool {
	ofPort := slices.ContainsFunc(rule.When, func(c *security.Condition) bool { return c.GetKey() == "destination.port" }) ||
		slices.ContainsFunc(rule.To, func(to *security.Rule_To) bool {
			return len(to.GetOperation().GetPorts())+len(to.GetOperation().GetNotPorts()) > 0
		})
	if ofPort || len(rule.To) > 0 {
		return !ofPort
	}
	return len(rule.From) > 0 && !slices.ContainsFunc(rule.From, func(from *security.Rule_From) bool { return namesPeer(from.GetSource()) })
}

// namesPeer reports whether a source says something of the connection rather than
// of the request.
func namesPeer(s *security.Source) bool {
	return len(slices.Concat(
		s.GetPrincipals(), s.GetNotPrincipals(), s.GetNamespaces(), s.GetNotNamespaces(),
		s.GetTrustDomains(), s.GetNotTrustDomains(), s.GetServiceAccounts(), s.GetNotServiceAccounts(),
		s.GetIpBlocks(), s.GetNotIpBlocks(), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(),
	)) > 0
}
