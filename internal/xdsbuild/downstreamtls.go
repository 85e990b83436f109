// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// peerExchange is the ALPN protocol of Istio's metadata exchange between proxies on TCP
// connections.
const peerExchange = "istio-peer-exchange"

// DownstreamTLS returns the TLS context of a server of a Gateway that terminates TLS. The package
// comment has the names of secrets. A client certificate is required (MUTUAL, ISTIO_MUTUAL),
// optional (OPTIONAL_MUTUAL) or not requested (SIMPLE). Versions, ciphers and curves are the
// server's, or the mesh's if the server sets none; mesh may be nil.
//
// The result is nil for a server that does not terminate TLS, or that has no certificate.
func DownstreamTLS(server *networking.Server, mesh *meshconfig.MeshConfig) *tlsv3.DownstreamTlsContext {
	settings := server.GetTls()
	if !terminatesTLS(server) {
		return nil
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams:     serverParameters(settings, mesh.GetTlsDefaults()),
		AlpnProtocols: serverALPN(server),
	}
	for _, name := range envoy.ServerCertificates(settings) {
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs, sds(name))
	}
	if len(common.TlsCertificateSdsSecretConfigs) == 0 {
		return nil
	}
	if roots := envoy.ServerRoots(settings); roots != "" {
		validateWith(common, roots, clientValidation(settings))
	}
	mode := settings.GetMode()
	required := mode == networking.ServerTLSSettings_MUTUAL || mode == networking.ServerTLSSettings_ISTIO_MUTUAL
	return &tlsv3.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(required)}
}

// HasCertificate reports whether DownstreamTLS returns a TLS context for a server.
func HasCertificate(server *networking.Server) bool {
	return terminatesTLS(server) && len(envoy.ServerCertificates(server.GetTls())) > 0
}

// terminatesTLS reports whether a server decrypts its connections.
func terminatesTLS(server *networking.Server) bool {
	if !registry.ParseProtocol(server.GetPort().GetProtocol()).IsTLS() || server.GetTls() == nil {
		return false
	}
	mode := server.GetTls().GetMode()
	return mode != networking.ServerTLSSettings_PASSTHROUGH && mode != networking.ServerTLSSettings_AUTO_PASSTHROUGH
}

// serverALPN returns the ALPN protocols that the server offers. A server that is not HTTP offers
// none, because a client could choose h2 and then speak it to any upstream.
func serverALPN(server *networking.Server) []string {
	if registry.ParseProtocol(server.GetPort().GetProtocol()) == registry.ProtocolHTTPS {
		return []string{"h2", "http/1.1"}
	}
	if server.GetTls().GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		return []string{peerExchange, "h2", "http/1.1"}
	}
	return nil
}

// VerifiesClients reports whether a server that terminates TLS requests client certificates.
func VerifiesClients(tls *networking.ServerTLSSettings) bool { return envoy.ServerRoots(tls) != "" }

// TakesUnverified reports whether a server that terminates TLS accepts client certificates without
// verification.
func TakesUnverified(tls *networking.ServerTLSSettings) bool {
	return VerifiesClients(tls) && tls.GetInsecureSkipVerify().GetValue()
}

// SameClients reports whether two servers have the same requirements for client certificates.
func SameClients(a, b *networking.ServerTLSSettings) bool {
	return a.GetMode() == b.GetMode() && envoy.ServerRoots(a) == envoy.ServerRoots(b) && proto.Equal(clientValidation(a), clientValidation(b))
}

// clientValidation returns the requirements for a client certificate, except its authorities.
func clientValidation(tls *networking.ServerTLSSettings) *tlsv3.CertificateValidationContext {
	v := verifying(tls.GetSubjectAltNames())
	v.VerifyCertificateSpki, v.VerifyCertificateHash = tls.GetVerifyCertificateSpki(), tls.GetVerifyCertificateHash()
	if tls.GetCaCrl() != "" && tls.GetCredentialName() == "" && len(tls.GetCredentialNames()) == 0 {
		v.Crl = &core.DataSource{Specifier: &core.DataSource_Filename{Filename: tls.GetCaCrl()}}
	}
	if tls.GetInsecureSkipVerify().GetValue() {
		v.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	}
	return v
}
