// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net/netip"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// verifying returns what a certificate must have besides a signature: one of the names,
// if there are any.
func verifying(names []string) *tlsv3.CertificateValidationContext {
	v := &tlsv3.CertificateValidationContext{}
	for _, n := range names {
		for _, kind := range kindsOf(n) {
			v.MatchTypedSubjectAltNames = append(v.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{SanType: kind, Matcher: exactly(n)})
		}
	}
	return v
}

// kindsOf returns which kinds of subject alternative names a name may be. Configs do not
// say it, but its form does: URIs have a scheme (SPIFFE IDs, "urn:x"), mail addresses an
// "@". An IP address may be in a certificate as a DNS name as well.
func kindsOf(name string) []tlsv3.SubjectAltNameMatcher_SanType {
	switch _, err := netip.ParseAddr(name); {
	case err == nil:
		return []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_IP_ADDRESS, tlsv3.SubjectAltNameMatcher_DNS}
	case strings.Contains(name, ":"):
		return []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_URI}
	case strings.Contains(name, "@"):
		return []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_EMAIL}
	default:
		return []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_DNS}
	}
}

// verifyingForGRPC is verifying for gRPC clients, which do not know typed names and
// would take any certificate of the mesh.
func verifyingForGRPC(names []string) *tlsv3.CertificateValidationContext {
	v := &tlsv3.CertificateValidationContext{}
	for _, n := range names {
		v.MatchSubjectAltNames = append(v.MatchSubjectAltNames, exactly(n)) //nolint:staticcheck // See above.
	}
	return v
}

func exactly(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
}
