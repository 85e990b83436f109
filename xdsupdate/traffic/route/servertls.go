// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/tls"
	"errors"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// ServerTLS is how a gateway terminates TLS. It is immutable.
type ServerTLS struct {
	// Certificates are the names of the secrets with the certificates to present. Roots is the name
	// of the secret with the CAs that sign the certificates of clients; without it, clients are asked
	// for none.
	Certificates []string
	Roots        string
	// RequireCertificate: a client without a certificate is refused.
	RequireCertificate bool
	// Protocols are accepted by ALPN.
	Protocols []string

	settings settings
}

func newServerTLS(context *tlsv3.DownstreamTlsContext) *ServerTLS {
	s := newSettings(context.GetCommonTlsContext())
	return &ServerTLS{
		Certificates: s.certificates(), Roots: s.roots(),
		RequireCertificate: context.GetRequireClientCertificate().GetValue(),
		Protocols:          s.common.GetAlpnProtocols(),
		settings:           s,
	}
}

// Config returns the settings for crypto/tls, with the secrets of this moment. A client's
// certificate is verified, has one of the names and hashes that the server wants, and at most one
// URI, so that Request.Principal says all that policies can ask for (SPIFFE, X.509-SVID). Versions,
// cipher suites and curves that crypto/tls does not have are left out. Config returns an error if a
// secret is missing, if none of the cipher suites or curves is left, or for a revocation list. The
// caller may change the result.
func (s *ServerTLS) Config(secret Secrets) (*tls.Config, error) {
	out, roots, err := s.settings.config(secret)
	if err != nil || s.Roots == "" {
		return out, err
	}
	out.ClientCAs = roots
	switch {
	case roots == nil && s.RequireCertificate:
		out.ClientAuth = tls.RequireAnyClientCert
	case roots == nil:
		out.ClientAuth = tls.RequestClientCert
	case s.RequireCertificate:
		out.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		out.ClientAuth = tls.VerifyClientCertIfGiven
	}
	out.VerifyConnection = func(c tls.ConnectionState) error {
		switch {
		case len(c.PeerCertificates) == 0:
			return nil
		case len(c.PeerCertificates[0].URIs) > 1:
			return errors.New("the client's certificate has several identities")
		default:
			return s.settings.peer.accepts(c.PeerCertificates[0])
		}
	}
	return out, nil
}

// Handshake returns how a gateway terminates the TLS of a connection, by its port, server name and
// addresses. It is nil for connections that are closed, or forwarded without being decrypted.
func (r *Router) Handshake(q Request) *ServerTLS {
	l := r.listener(q)
	if l == nil {
		return nil
	}
	c := newCall(q)
	c.ServerName = asciiLower(c.ServerName)
	if x := l.chainFor(c); x != nil {
		return x.get().server
	}
	return nil
}
