// SPDX-License-Identifier: Apache-2.0

package route

import tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

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
}

func newServerTLS(context *tls.DownstreamTlsContext) *ServerTLS {
	common := context.GetCommonTlsContext()
	out := &ServerTLS{
		Roots:              common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName(),
		RequireCertificate: context.GetRequireClientCertificate().GetValue(),
		Protocols:          common.GetAlpnProtocols(),
	}
	for _, c := range common.GetTlsCertificateSdsSecretConfigs() {
		out.Certificates = append(out.Certificates, c.GetName())
	}
	return out
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
