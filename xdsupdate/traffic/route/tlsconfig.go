// SPDX-License-Identifier: Apache-2.0

package route

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// Secrets returns the secret of a name, such as "kubernetes://cart" or "default", as it is served
// by SDS. Files that a secret names are read when it is used. Provider.Secret of package secrets is
// such a function.
type Secrets func(name string) (*tlsv3.Secret, error)

// settings are the TLS settings of either side of a connection.
type settings struct {
	common *tlsv3.CommonTlsContext
	peer   peer
}

func newSettings(common *tlsv3.CommonTlsContext) settings {
	return settings{common, newPeer(common.GetCombinedValidationContext().GetDefaultValidationContext())}
}

// certificates are the names of the secrets with certificates to present.
func (s *settings) certificates() (names []string) {
	for _, c := range s.common.GetTlsCertificateSdsSecretConfigs() {
		names = append(names, c.GetName())
	}
	if p := s.common.GetTlsCertificateProviderInstance(); p != nil {
		names = append(names, p.GetCertificateName())
	}
	return names
}

// roots is the name of the secret with the CAs that sign the peer's certificate, or "".
func (s *settings) roots() string {
	combined := s.common.GetCombinedValidationContext()
	return cmp.Or(combined.GetValidationContextSdsSecretConfig().GetName(),
		combined.GetDefaultValidationContext().GetCaCertificateProviderInstance().GetCertificateName())
}

func (s *settings) equal(other *settings) bool { return proto.Equal(s.common, other.common) }

// config returns the settings without the verification of the peer's chain, and the CAs for that,
// which are nil if the chain is not verified.
func (s *settings) config(secret Secrets) (*tls.Config, *x509.CertPool, error) {
	params := s.common.GetTlsParams()
	out := &tls.Config{
		MinVersion: cmp.Or(versions[params.GetTlsMinimumProtocolVersion()], tls.VersionTLS12),
		MaxVersion: versions[params.GetTlsMaximumProtocolVersion()],
		NextProtos: s.common.GetAlpnProtocols(),
	}
	var err error
	if out.CipherSuites, err = known("cipher suite", params.GetCipherSuites(), suites); err != nil {
		return nil, nil, err
	}
	if out.CurvePreferences, err = known("curve", params.GetEcdhCurves(), curves); err != nil {
		return nil, nil, err
	}
	for _, name := range s.certificates() {
		c, err := certificateOf(name, secret)
		if err != nil {
			return nil, nil, fmt.Errorf("the certificate %q: %w", name, err)
		}
		out.Certificates = append(out.Certificates, c)
	}
	if s.peer.revoked {
		return nil, nil, errors.New("certificate revocation lists are not supported")
	}
	if s.roots() == "" || s.peer.untrusted {
		return out, nil, nil
	}
	roots, err := rootsOf(s.roots(), secret)
	if err != nil {
		return nil, nil, fmt.Errorf("the authorities %q: %w", s.roots(), err)
	}
	return out, roots, nil
}

// certificateOf returns the certificate of a secret with its key.
func certificateOf(name string, secret Secrets) (tls.Certificate, error) {
	s, err := secret(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	chain, err := data(s.GetTlsCertificate().GetCertificateChain())
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := data(s.GetTlsCertificate().GetPrivateKey())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
}

// rootsOf returns the certificate authorities of a secret.
func rootsOf(name string, secret Secrets) (*x509.CertPool, error) {
	s, err := secret(name)
	if err != nil {
		return nil, err
	}
	if s.GetValidationContext().GetCrl() != nil {
		return nil, errors.New("certificate revocation lists are not supported")
	}
	pem, err := data(s.GetValidationContext().GetTrustedCa())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("has no certificate")
	}
	return roots, nil
}

// data returns the content of a data source.
func data(of *core.DataSource) ([]byte, error) {
	switch from := of.GetSpecifier().(type) {
	case *core.DataSource_InlineBytes:
		return from.InlineBytes, nil
	case *core.DataSource_InlineString:
		return []byte(from.InlineString), nil
	case *core.DataSource_Filename:
		return os.ReadFile(from.Filename)
	default:
		return nil, errors.New("does not exist")
	}
}

// chainVerifier returns a check of the certificates of a server, which must have presented some.
func (p *peer) chainVerifier(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if roots != nil {
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: time.Now()}); err != nil {
				return err
			}
		}
		return p.accepts(s.PeerCertificates[0])
	}
}

// known returns the values of names that crypto/tls has. "[A|B]" are names of equal preference. An
// error means that crypto/tls has none of the names.
func known[V any](what string, names []string, values map[string]V) (out []V, err error) {
	for _, n := range names {
		for one := range strings.SplitSeq(strings.Trim(n, "[]"), "|") {
			if one == "ALL" {
				return nil, nil
			}
			if v, ok := values[one]; ok {
				out = append(out, v)
			}
		}
	}
	if len(names) > 0 && len(out) == 0 {
		return nil, fmt.Errorf("no %s of %q is supported", what, names)
	}
	return out, nil
}

//nolint:gochecknoglobals // never changed
var (
	versions = map[tlsv3.TlsParameters_TlsProtocol]uint16{
		tlsv3.TlsParameters_TLSv1_0: tls.VersionTLS10, tlsv3.TlsParameters_TLSv1_1: tls.VersionTLS11,
		tlsv3.TlsParameters_TLSv1_2: tls.VersionTLS12, tlsv3.TlsParameters_TLSv1_3: tls.VersionTLS13,
	}
	curves = map[string]tls.CurveID{
		"P-256": tls.CurveP256, "P-384": tls.CurveP384, "P-521": tls.CurveP521, "X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768,
	}
	suites = map[string]uint16{
		"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
		"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
		"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
		"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
		"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
		"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
	}
)
