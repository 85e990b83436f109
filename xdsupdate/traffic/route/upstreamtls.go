// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/tls"
	"errors"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TLS is how a proxy connects to an endpoint by TLS. It is immutable.
type TLS struct {
	// Mutual is set if the proxy presents the certificate of its workload, as for mutual TLS of the
	// mesh.
	Mutual bool
	// ServerName is sent to the server, unless it is empty.
	ServerName string
	// AuthorityIsName: instead of ServerName the host of the request is sent, and with
	// AuthorityIsIdentity the server's certificate has to be for it. Requests for other hosts need
	// other connections.
	AuthorityIsName, AuthorityIsIdentity bool
	// Protocols are offered by ALPN.
	Protocols []string
	// Certificate and Roots are the names of secrets, as a proxy asks for them by SDS: the
	// certificate to present, and the CAs that have to sign the server's certificate. Without Roots
	// that is not verified.
	Certificate, Roots string
	// Identities are the identities that the server may have, such as SPIFFE IDs. Without any, each
	// certificate that the CAs have signed is good.
	Identities []string

	settings settings
}

// newTLS returns the TLS of a transport socket, or nil for plain text. The options are the
// cluster's.
func newTLS(socket *core.TransportSocket, options *upstreams.HttpProtocolOptions) *TLS {
	var proxied proxyprotocol.ProxyProtocolUpstreamTransport
	if socket.GetTypedConfig().UnmarshalTo(&proxied) == nil {
		socket = proxied.GetTransportSocket()
	}
	var context tlsv3.UpstreamTlsContext
	if socket.GetTypedConfig().UnmarshalTo(&context) != nil {
		return nil
	}
	s := newSettings(context.GetCommonTlsContext())
	out := &TLS{
		ServerName: context.GetSni(), Protocols: s.common.GetAlpnProtocols(), Roots: s.roots(), Identities: s.peer.names,
		AuthorityIsName:     options.GetUpstreamHttpProtocolOptions().GetAutoSni(),
		AuthorityIsIdentity: options.GetUpstreamHttpProtocolOptions().GetAutoSanValidation(),
		settings:            s,
	}
	for _, name := range s.certificates() {
		out.Certificate, out.Mutual = name, name == envoy.WorkloadCertificate
	}
	return out
}

// Equal reports whether two settings are the same, so that connections by one of them serve the
// other, too. Either may be nil, for plain text.
func (t *TLS) Equal(other *TLS) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.ServerName == other.ServerName && t.AuthorityIsName == other.AuthorityIsName &&
		t.AuthorityIsIdentity == other.AuthorityIsIdentity && t.settings.equal(&other.settings)
}

// Config returns the settings for crypto/tls with which requests of an authority are sent, with the
// secrets of this moment. As Envoy does, it verifies the chain of the server by Roots, and the names
// in its certificate by Identities or the authority, not by ServerName. Errors are as for
// ServerTLS.Config. The caller may change the result, but must not remove VerifyConnection.
func (t *TLS) Config(authority string, secret Secrets) (*tls.Config, error) {
	out, roots, err := t.settings.config(secret)
	if err != nil {
		return nil, err
	}
	host, _ := splitPort(authority)
	out.ServerName = t.ServerName
	if t.AuthorityIsName {
		out.ServerName = host
	}
	verify := t.settings.peer.chainVerifier(roots)
	out.InsecureSkipVerify = true // VerifyConnection does it, with Envoy's rules for names
	out.VerifyConnection = func(c tls.ConnectionState) error {
		if err := verify(c); err != nil {
			return err
		}
		if t.AuthorityIsIdentity && c.PeerCertificates[0].VerifyHostname(host) != nil {
			return errors.New("the server's certificate is not for the host of the request")
		}
		return nil
	}
	return out, nil
}
