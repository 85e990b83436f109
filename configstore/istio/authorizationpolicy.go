// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// The limits of istio.io/api for service accounts in a source.
const (
	maxServiceAccounts      = 16
	maxServiceAccountLength = 320
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
	for i, rule := range policy.Rules {
		if rule == nil {
			spec.elem("rules", i).refuseNull()
			continue
		}
		checkRule(spec.elem("rules", i), rule)
	}
}

func checkRule(at *field, rule *security.Rule) {
	for i, from := range rule.From {
		if source := from.GetSource(); source == nil {
			at.elem("from", i).child("source").refuse("is required")
		} else {
			checkAuthorizationSource(at.elem("from", i).child("source"), source)
		}
	}
	for i, to := range rule.To {
		if operation := to.GetOperation(); operation == nil {
			at.elem("to", i).child("operation").refuse("is required")
		} else {
			checkOperation(at.elem("to", i).child("operation"), operation)
		}
	}
	for i, condition := range rule.When {
		if condition == nil {
			at.elem("when", i).refuseNull()
			continue
		}
		checkCondition(at.elem("when", i), condition)
	}
}

func checkAuthorizationSource(at *field, source *security.Source) {
	lists := checkNoEmpties(at, []stringList{
		{"principals", source.Principals},
		{"notPrincipals", source.NotPrincipals},
		{"requestPrincipals", source.RequestPrincipals},
		{"notRequestPrincipals", source.NotRequestPrincipals},
		{"namespaces", source.Namespaces},
		{"notNamespaces", source.NotNamespaces},
		{"trustDomains", source.TrustDomains},
		{"notTrustDomains", source.NotTrustDomains},
		{"serviceAccounts", source.ServiceAccounts},
		{"notServiceAccounts", source.NotServiceAccounts},
		{"ipBlocks", source.IpBlocks},
		{"notIpBlocks", source.NotIpBlocks},
		{"remoteIpBlocks", source.RemoteIpBlocks},
		{"notRemoteIpBlocks", source.NotRemoteIpBlocks},
	})
	if lists == 0 {
		at.refuse("must not be empty")
	}
	for _, blocks := range []stringList{
		{"ipBlocks", source.IpBlocks},
		{"notIpBlocks", source.NotIpBlocks},
		{"remoteIpBlocks", source.RemoteIpBlocks},
		{"notRemoteIpBlocks", source.NotRemoteIpBlocks},
	} {
		for i, block := range blocks.values {
			if block != "" {
				checkSubnet(at.elem(blocks.name, i), block)
			}
		}
	}
	checkServiceAccounts(at, "serviceAccounts", source.ServiceAccounts)
	checkServiceAccounts(at, "notServiceAccounts", source.NotServiceAccounts)
	accounts := len(source.ServiceAccounts) + len(source.NotServiceAccounts)
	others := len(source.Principals) + len(source.NotPrincipals) + len(source.Namespaces) + len(source.NotNamespaces)
	if accounts > 0 && others > 0 {
		at.refuse("must not have service accounts beside principals or namespaces")
	}
}

// checkServiceAccounts checks accounts written "name" or "namespace/name".
func checkServiceAccounts(at *field, name string, accounts []string) {
	if len(accounts) > maxServiceAccounts {
		at.child(name).refuse("must have at most %d elements, has %d", maxServiceAccounts, len(accounts))
	}
	for i, account := range accounts {
		switch {
		case account == "": // said already
		case len(account) > maxServiceAccountLength:
			at.elem(name, i).refuse("must have at most %d characters, has %d", maxServiceAccountLength, len(account))
		case strings.Contains(account, "*"):
			at.elem(name, i).refuse("must not contain a wildcard, is %q", account)
		case strings.Count(account, "/") > 1, strings.HasPrefix(account, "/"), strings.HasSuffix(account, "/"):
			at.elem(name, i).refuse("must be an account or namespace/account, is %q", account)
		}
	}
}

// stringList is a field that holds a list of strings.
type stringList struct {
	name   string
	values []string
}

// checkNoEmpties is checkNoEmpty for many lists; it returns how many have
// elements.
func checkNoEmpties(at *field, lists []stringList) (used int) {
	for _, list := range lists {
		checkNoEmpty(at, list.name, list.values)
		if len(list.values) > 0 {
			used++
		}
	}
	return used
}
