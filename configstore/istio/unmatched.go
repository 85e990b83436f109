// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
)

// Values that cannot match are accepted, as in Istio 1.30, but with a warning: a policy that denies
// by such a value denies nothing, and one that allows everything except it allows everything.

// maxIdentityLength is that of SPIFFE IDs, and maxTrustDomainLength that of the first part.
const (
	maxIdentityLength    = 2048
	maxTrustDomainLength = 255
)

// innerStar finds a star that stands for itself: only the first character or the last one is a wildcard.
func innerStar(value string) string {
	if rest, ok := strings.CutPrefix(value, "*"); ok {
		value = rest
	} else {
		value = strings.TrimSuffix(value, "*")
	}
	if strings.Contains(value, "*") {
		return "has a * that is not a wildcard: only one at the start or else at the end is"
	}
	return ""
}

func unmatchedPath(path string) string {
	switch {
	case strings.Contains(path, templateOne), strings.Contains(path, templateRest):
		return ""
	case strings.ContainsAny(path, "?#"):
		return "is not the path of a request: they are compared without query and fragment"
	case path[:min(len(path), 1)] != "/" && path[:min(len(path), 1)] != "*":
		return "is not the path of a request: they begin with /"
	default:
		return innerStar(path)
	}
}

// consistsOf reports whether a text has only letters, digits and some other characters.
func consistsOf(text, others string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

func unmatchedPrincipal(principal string) string {
	id := strings.TrimPrefix(principal, "spiffe://")
	switch {
	case !consistsOf(id, "-._/*"), len(id) > maxIdentityLength, !strings.ContainsAny(id, "/*"):
		return "is not the identity of a workload, which has the form TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT"
	case strings.Count(id, "/") == 4: // The trust domain may end in a star.
		domain, path, _ := strings.Cut(id, "/")
		id = strings.TrimSuffix(domain, "*") + "/" + path
	}
	return innerStar(id)
}

// unmatchedNamespace knows that here stars are wildcards anywhere.
func unmatchedNamespace(namespace string) string {
	if !consistsOf(namespace, "-*") || len(namespace) > maxLabelLength {
		return "is not the name of a namespace"
	}
	return ""
}

func unmatchedAccount(account string) string {
	if !consistsOf(account, "-./*") { // stars are refused
		return "is not the name of a service account"
	}
	return ""
}

func unmatchedTrustDomain(domain string) string {
	if !consistsOf(domain, "-._*") || len(domain) > maxTrustDomainLength {
		return "is not a trust domain"
	}
	return ""
}
