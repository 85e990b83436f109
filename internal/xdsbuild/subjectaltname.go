// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/netip"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// verifying returns the requirements for a certificate in addition to its signature: it must have
// one of the names, if there are any.
func verifying(names []string) *tlsv3.CertificateValidationContext {
	v := &tlsv3.CertificateValidationContext{}
	for _, n := range names {
		for _, kind := range kindsOf(n) {
			v.MatchTypedSubjectAltNames = append(v.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{SanType: kind, Matcher: exactly(n)})
		}
	}
	return v
}

// kindsOf returns the types of subject alternative names that a name may have. Configs do not
// specify the type, so it follows from the form: URIs have a scheme (SPIFFE IDs, "urn:x"), mail
// addresses an "@". A certificate may also have an IP address as a DNS name.
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

// verifyingForGRPC is verifying for gRPC clients, which do not support typed names and would accept
// any certificate of the mesh.
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
