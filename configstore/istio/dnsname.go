// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// The limits of RFC 1123 and RFC 1035.
const (
	maxLabelLength  = 63
	maxDomainLength = 255
)

const dnsLabelRule = "letters, digits and inner dashes, at most 63 characters"

// isDNSLabel reports whether s is a DNS label. Istio 1.30 takes upper-case
// letters too, here and in domains.
func isDNSLabel(s string) bool { return len(s) <= maxLabelLength && isDashed(s) }

// isWildcardLabel reports whether s is "*", or "*" and a DNS label, which may
// begin with a dash.
func isWildcardLabel(s string) bool {
	rest, ok := strings.CutPrefix(s, "*")
	return ok && len(s) <= maxLabelLength && (rest == "" || isDashed(strings.TrimPrefix(rest, "-")))
}

// isDashed reports whether s consists of letters, digits and inner dashes.
func isDashed(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	// Setting this bit makes capital letters small ones, and no letters of others.
	return (c|0x20)-'a' < 26 || c-'0' < 10
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// checkDNSLabel rejects strings that are not DNS labels.
func checkDNSLabel(at *field, s string) {
	switch {
	case s == "":
		at.refuse("is required")
	case !isDNSLabel(s):
		at.refuse("must be a DNS label (%s), is %q", dnsLabelRule, s)
	}
}

// checkWildcardDomain rejects strings that are not domain names. The first label may be "*" or
// start with it. One trailing dot is allowed.
func checkWildcardDomain(at *field, name string) {
	if problem := domainProblem(name, true); problem != "" {
		at.refuse("%s", excerpt.Phrase(problem))
	}
}

func isFQDN(name string) bool { return domainProblem(name, false) == "" }

// isWildcarded reports whether the name stands for many, as Istio decides it: by
// its first byte.
func isWildcarded(name string) bool { return strings.HasPrefix(name, "*") }

// isPartialWildcard reports whether a wildcard shares its label with other
// characters, as in "*-a.example.com". Envoy knows such wildcards in the domains
// of HTTP virtual hosts, but not in the server names of TLS.
func isPartialWildcard(name string) bool {
	return name != "*" && strings.Contains(name, "*") && !strings.HasPrefix(name, "*.")
}

// domainProblem describes why a domain name is invalid, or returns "". A name with a numeric last
// label is considered a malformed IP address, except, as in Istio 1.30, with a trailing dot and as
// the only label where wildcards are allowed.
func domainProblem(name string, wildcard bool) string {
	if name == "" {
		return "is required"
	}
	if len(name) > maxDomainLength {
		return fmt.Sprintf("must have at most %d characters, has %d", maxDomainLength, len(name))
	}
	rest, dotted := strings.CutSuffix(name, ".")
	for first := true; ; first = false {
		label, tail, more := strings.Cut(rest, ".")
		ok := isDNSLabel(label) || first && wildcard && isWildcardLabel(label)
		if !ok {
			return fmt.Sprintf("must be a domain name, is %q: %q is not a DNS label (%s)", name, label, dnsLabelRule)
		}
		if !more {
			if alone := first && wildcard; isNumeric(label) && !dotted && !alone {
				return fmt.Sprintf("must be a domain name, is %q: its last label must not be a number", name)
			}
			return ""
		}
		rest = tail
	}
}

func isNumeric(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
