// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	security "istio.io/api/security/v1beta1"
)

// The limits of istio.io/api for service accounts in a source.
const (
	maxServiceAccounts      = 16
	maxServiceAccountLength = 320
)

// checkAuthorizationSource checks where the requests of a rule come from.
func checkAuthorizationSource(at *field, source *security.Source, action security.AuthorizationPolicy_Action) {
	identities := []valueList{
		{"principals", source.Principals, nil, unmatchedPrincipal},
		{"notPrincipals", source.NotPrincipals, nil, unmatchedPrincipal},
		{"requestPrincipals", source.RequestPrincipals, nil, innerStar},
		{"notRequestPrincipals", source.NotRequestPrincipals, nil, innerStar},
		{"namespaces", source.Namespaces, nil, unmatchedNamespace},
		{"notNamespaces", source.NotNamespaces, nil, unmatchedNamespace},
		{"trustDomains", source.TrustDomains, checkTrustDomains, unmatchedTrustDomain},
		{"notTrustDomains", source.NotTrustDomains, checkTrustDomains, unmatchedTrustDomain},
		{"serviceAccounts", source.ServiceAccounts, checkServiceAccounts, unmatchedAccount},
		{"notServiceAccounts", source.NotServiceAccounts, checkServiceAccounts, unmatchedAccount},
	}
	checkValues(at, "must not be empty", append(identities,
		valueList{"ipBlocks", source.IpBlocks, checkBlocks, nil},
		valueList{"notIpBlocks", source.NotIpBlocks, checkBlocks, nil},
		valueList{"remoteIpBlocks", source.RemoteIpBlocks, checkBlocks, nil},
		valueList{"notRemoteIpBlocks", source.NotRemoteIpBlocks, checkBlocks, nil},
	)...)
	if action == security.AuthorizationPolicy_CUSTOM {
		checkNoIdentities(at, identities)
	}
	accounts := len(source.ServiceAccounts) + len(source.NotServiceAccounts)
	others := len(source.Principals) + len(source.NotPrincipals) + len(source.Namespaces) + len(source.NotNamespaces)
	if accounts > 0 && others > 0 {
		at.refuse("must not have service accounts together with principals or namespaces")
	}
}

// checkNoIdentities: whether the provider of a CUSTOM policy is asked is decided
// before identities are known.
func checkNoIdentities(at *field, identities []valueList) {
	for _, list := range identities {
		if len(list.values) > 0 {
			at.child(list.name).refuse("must not be set for action CUSTOM")
		}
	}
}

// checkBlocks checks IP addresses and CIDR blocks; empty ones are refused elsewhere.
func checkBlocks(at *field, name string, blocks []string) {
	for i, block := range blocks {
		if block != "" {
			checkSubnet(at.elem(name, i), block)
		}
	}
}

// checkTrustDomains checks trust domains, which may begin or end with a wildcard.
func checkTrustDomains(at *field, name string, domains []string) {
	checkWildcards(at, name, domains)
	for i, domain := range domains {
		if strings.Contains(domain, "/") {
			at.elem(name, i).refuse("must be a trust domain without a path, is %q", domain)
		}
	}
}

// checkWildcards refuses wildcards that are neither at the start nor at the end.
func checkWildcards(at *field, name string, values []string) {
	for i, value := range values {
		inner := strings.TrimSuffix(value, "*")
		if inner == value {
			inner = strings.TrimPrefix(value, "*")
		}
		if strings.Contains(inner, "*") {
			at.elem(name, i).refuse("must have at most one wildcard, at the start or the end, is %q", value)
		}
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
