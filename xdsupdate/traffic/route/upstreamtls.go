// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/x509"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TLS is how a proxy connects to an endpoint by TLS. It is immutable.
type TLS struct {
	// Mutual is set if the proxy presents the certificate of its workload, as for mutual TLS of the
	// mesh.
	Mutual bool
	// ServerName is sent to the server, unless it is empty.
	ServerName string
	// Protocols are offered by ALPN.
	Protocols []string
	// Certificate and Roots are the names of secrets, as a proxy asks for them by SDS: the
	// certificate to present, and the CAs that have to sign the server's certificate. Without Roots
	// that is not verified.
	Certificate, Roots string
	// Identities are the identities that the server may have, such as SPIFFE IDs. Without any, each
	// certificate that the CAs have signed is good.
	Identities []string

	identities []identity
}

// identity is an expected name of one type. The type SAN_TYPE_UNSPECIFIED stands for all.
type identity struct {
	of      tls.SubjectAltNameMatcher_SanType
	matches text
}

// Expects reports whether a certificate, whose chain the caller has verified, is for one of the
// identities.
func (t *TLS) Expects(c *x509.Certificate) bool {
	if len(t.identities) == 0 {
		return true
	}
	for _, i := range t.identities {
		if slices.ContainsFunc(namesIn(c, i.of), i.matches) {
			return true
		}
	}
	return false
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

// newTLS returns the TLS of a transport socket, or nil for plain text.
func newTLS(socket *core.TransportSocket) *TLS {
	var proxied proxyprotocol.ProxyProtocolUpstreamTransport
	if socket.GetTypedConfig().UnmarshalTo(&proxied) == nil {
		socket = proxied.GetTransportSocket()
	}
	var context tls.UpstreamTlsContext
	if socket.GetTypedConfig().UnmarshalTo(&context) != nil {
		return nil
	}
	common := context.GetCommonTlsContext()
	out := &TLS{ServerName: context.GetSni(), Protocols: common.GetAlpnProtocols()}
	for _, c := range common.GetTlsCertificateSdsSecretConfigs() {
		out.Certificate, out.Mutual = c.GetName(), c.GetName() == envoy.WorkloadCertificate
	}
	combined := common.GetCombinedValidationContext()
	out.Roots = combined.GetValidationContextSdsSecretConfig().GetName()
	for _, m := range combined.GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
		out.expect(m.GetSanType(), m.GetMatcher())
	}
	for _, m := range combined.GetDefaultValidationContext().GetMatchSubjectAltNames() { //nolint:staticcheck // of gRPC clients
		out.expect(tls.SubjectAltNameMatcher_SAN_TYPE_UNSPECIFIED, m)
	}
	return out
}

// expect adds an identity. One that cannot be evaluated matches nothing.
func (t *TLS) expect(of tls.SubjectAltNameMatcher_SanType, m *matcher.StringMatcher) {
	matches, err := newText(m)
	if err != nil {
		matches = func(string) bool { return false }
	}
	t.identities = append(t.identities, identity{of, matches})
	if name := m.GetExact(); name != "" {
		t.Identities = append(t.Identities, name)
	}
}
