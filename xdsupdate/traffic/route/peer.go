// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// peer has the requirements for the certificate of a peer, in addition to its signature.
type peer struct {
	// names are the exact names among identities.
	names      []string
	identities []identity
	// keys and hashes are SHA-256 sums of public keys in Base64, and of certificates in hexadecimal
	// digits. A certificate needs one of either.
	keys, hashes []string
	// untrusted: the chain is not verified. revoked: there is a revocation list.
	untrusted, revoked bool
}

// identity is an expected name of one type. The type SAN_TYPE_UNSPECIFIED stands for all.
type identity struct {
	of      tls.SubjectAltNameMatcher_SanType
	matches text
}

func newPeer(v *tls.CertificateValidationContext) peer {
	out := peer{
		keys: v.GetVerifyCertificateSpki(), revoked: v.GetCrl() != nil,
		untrusted: v.GetTrustChainVerification() == tls.CertificateValidationContext_ACCEPT_UNTRUSTED,
	}
	for _, h := range v.GetVerifyCertificateHash() {
		out.hashes = append(out.hashes, asciiLower(strings.ReplaceAll(h, ":", "")))
	}
	for _, m := range v.GetMatchTypedSubjectAltNames() {
		out.expect(m.GetSanType(), m.GetMatcher())
	}
	for _, m := range v.GetMatchSubjectAltNames() { //nolint:staticcheck // of gRPC clients
		out.expect(tls.SubjectAltNameMatcher_SAN_TYPE_UNSPECIFIED, m)
	}
	return out
}

// expect adds an identity. One that cannot be evaluated matches nothing.
func (p *peer) expect(of tls.SubjectAltNameMatcher_SanType, m *matcher.StringMatcher) {
	matches, err := newText(m)
	if err != nil {
		matches = func(string) bool { return false }
	}
	if name := m.GetExact(); name != "" {
		p.names = append(p.names, name)
		if of == tls.SubjectAltNameMatcher_DNS {
			matches = func(pattern string) bool { return covers(pattern, name) }
		}
	}
	p.identities = append(p.identities, identity{of, matches})
}

// covers reports whether a DNS name of a certificate, which may begin with "*.", is for a host.
func covers(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok && strings.HasPrefix(suffix, ".") {
		label := len(host) - len(suffix)
		return label > 0 && !strings.Contains(host[:label], ".") && equalFold(host[label:], suffix)
	}
	return equalFold(pattern, host)
}

// accepts returns an error for a certificate that is not the expected peer's. Its chain must have
// been verified.
func (p *peer) accepts(c *x509.Certificate) error {
	if len(p.identities) > 0 && !slices.ContainsFunc(p.identities, func(i identity) bool { return slices.ContainsFunc(namesIn(c, i.of), i.matches) }) {
		return errors.New("the peer's certificate has none of the expected names")
	}
	if len(p.keys)+len(p.hashes) == 0 {
		return nil
	}
	key, whole := sha256.Sum256(c.RawSubjectPublicKeyInfo), sha256.Sum256(c.Raw)
	if slices.Contains(p.keys, base64.StdEncoding.EncodeToString(key[:])) || slices.Contains(p.hashes, hex.EncodeToString(whole[:])) {
		return nil
	}
	return errors.New("the peer's certificate has none of the expected hashes")
}

// namesIn returns the subject alternative names of a type.
func namesIn(c *x509.Certificate, of tls.SubjectAltNameMatcher_SanType) (out []string) {
	is := func(t tls.SubjectAltNameMatcher_SanType) bool {
		return of == t || of == tls.SubjectAltNameMatcher_SAN_TYPE_UNSPECIFIED
	}
	if is(tls.SubjectAltNameMatcher_DNS) {
		out = append(out, c.DNSNames...)
	}
	if is(tls.SubjectAltNameMatcher_EMAIL) {
		out = append(out, c.EmailAddresses...)
	}
	if is(tls.SubjectAltNameMatcher_URI) {
		for _, u := range c.URIs {
			out = append(out, u.String())
		}
	}
	if is(tls.SubjectAltNameMatcher_IP_ADDRESS) {
		for _, a := range c.IPAddresses {
			out = append(out, a.String())
		}
	}
	return out
}
