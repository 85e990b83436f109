// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"
	"strings"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbuffer "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

const (
	tlsModeIstio   = "istio"
	tlsSocket      = "envoy.transport_sockets.tls"
	rawSocket      = "envoy.transport_sockets.raw_buffer"
	proxyV1Socket  = "envoy.transport_sockets.upstream_proxy_protocol"
	inMesh         = "istio"
	http1Protocol  = "http/1.1"
	http2Protocol  = "h2"
	providerSocket = "default"
	// maxSNI is the maximum length of a server name that Envoy accepts.
	maxSNI = 255
)

// plaintext reports whether a policy excludes mutual TLS of the mesh for all connections.
func (u *Upstream) plaintext() bool {
	t := u.Policy.GetTls()
	return t != nil && t.GetMode() != networking.ClientTLSSettings_ISTIO_MUTUAL
}

// mutualTLS reports whether connections to an endpoint can use mutual TLS of the mesh.
func (u *Upstream) mutualTLS(e *registry.Endpoint) bool {
	return e.Attributes().TLSMode == tlsModeIstio && !u.plaintext() && (u.Plaintext == nil || !u.Plaintext(e))
}

// automatic reports whether mutual TLS depends on the endpoints.
func (u *Upstream) automatic() bool {
	enabled := u.Mesh.GetEnableAutoMtls()
	return u.Policy.GetTls() == nil && (enabled == nil || enabled.GetValue()) && !u.Service.MeshExternal && !u.AutoPassthrough
}

// matchesSockets reports whether a proxy can select the transport socket by the endpoint. It cannot
// for Passthrough and dynamic DNS, because their addresses have no metadata.
func (u *Upstream) matchesSockets() bool {
	r := u.resolution()
	return r != registry.Passthrough && r != registry.DynamicDNS
}

// allMutual reports whether the port has endpoints and all of them accept mutual TLS. Then a
// connection to any destination can use mutual TLS (Istio 1.30).
func (u *Upstream) allMutual() bool {
	some := false
	for _, e := range u.Endpoints {
		if !Serves(e, u.Port) {
			continue
		}
		if !u.mutualTLS(e) {
			return false
		}
		some = true
	}
	return some
}

// someMutual reports whether an endpoint of the service accepts mutual TLS, or did.
func (u *Upstream) someMutual() bool {
	return u.MutualTLS || slices.ContainsFunc(u.Endpoints, u.mutualTLS)
}

// setSockets sets TLS and the PROXY protocol. It references the secrets of the mesh only if a
// connection can use them, because a proxy does not finish warming a cluster before it has the
// cluster's secrets, and in a mesh without certificates each cluster would take long.
func (u *Upstream) setSockets(c *clusterv3.Cluster) {
	if u.AutoPassthrough {
		return
	}
	mutual := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL}
	if u.automatic() && !u.matchesSockets() && u.allMutual() {
		c.TransportSocket = u.wrap(u.socket(mutual))
		return
	}
	if u.automatic() && u.matchesSockets() && u.someMutual() {
		c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{
			{Name: "tlsMode-istio", Match: stringStruct("tlsMode", tlsModeIstio), TransportSocket: u.wrap(u.socket(mutual))},
			{Name: "tlsMode-disabled", Match: &structpb.Struct{}, TransportSocket: u.wrap(socketOf(rawSocket, &rawbuffer.RawBuffer{}))},
		}
		return
	}
	socket := u.socket(u.Policy.GetTls())
	if socket == nil && u.Policy.GetProxyProtocol() != nil {
		socket = socketOf("raw_buffer", &rawbuffer.RawBuffer{}) // Istio 1.30's name for this socket
	}
	if socket != nil {
		c.TransportSocket = u.wrap(socket)
	}
}

// wrap makes a socket begin with the PROXY protocol, if the policy asks for it.
func (u *Upstream) wrap(socket *core.TransportSocket) *core.TransportSocket {
	p := u.Policy.GetProxyProtocol()
	if p == nil {
		return socket
	}
	config := &core.ProxyProtocolConfig{Version: core.ProxyProtocolConfig_V1}
	if p.GetVersion() == networking.TrafficPolicy_ProxyProtocol_V2 {
		config.Version = core.ProxyProtocolConfig_V2
	}
	return socketOf(proxyV1Socket, &proxyprotocol.ProxyProtocolUpstreamTransport{Config: config, TransportSocket: socket})
}

// usableTLS returns the TLS settings, nil if connections are plain text: without settings, with
// mode DISABLE, and with private credentials that the proxy may not use.
func (u *Upstream) usableTLS() *networking.ClientTLSSettings {
	t := u.Policy.GetTls()
	name, mode := t.GetCredentialName(), t.GetMode()
	// Plain text in the place of a credential of the Gateway API would evade a BackendTLSPolicy.
	private := name != "" && mode != networking.ClientTLSSettings_ISTIO_MUTUAL && !FromGatewayAPI(name)
	if mode == networking.ClientTLSSettings_DISABLE || private && !u.Gateway && !u.SelectedByLabels {
		return nil
	}
	return t
}

// FromGatewayAPI reports whether a credential is one of those that package configstore/kube/gatewayapi
// derives from objects and serves. Authorities are for every proxy, and "invalid://" is not served, so
// that connections fail.
func FromGatewayAPI(credential string) bool {
	scheme, _, ok := strings.Cut(credential, "://")
	return ok && slices.Contains([]string{"configmap", "invalid", "kubernetes-gateway"}, scheme)
}

// socket returns the TLS socket for settings, nil if connections are plain text.
func (u *Upstream) socket(t *networking.ClientTLSSettings) *core.TransportSocket {
	if t == nil || t == u.Policy.GetTls() && u.usableTLS() == nil {
		return nil
	}
	context := &tls.UpstreamTlsContext{Sni: t.GetSni(), CommonTlsContext: &tls.CommonTlsContext{}}
	common := context.CommonTlsContext
	common.TlsParams = u.tlsParameters(t)
	if u.http2() {
		common.AlpnProtocols = []string{http2Protocol}
	}
	if t.GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL {
		common.AlpnProtocols = u.meshProtocols()
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{sds(envoy.WorkloadCertificate)}
		validateWith(common, envoy.MeshRoots, verifying(u.subjectAltNames(t)))
		if context.GetSni() == "" && len(u.sni()) <= maxSNI {
			context.Sni = u.sni()
		}
		return socketOf(tlsSocket, context)
	}
	u.setForeignTLS(common, t)
	return socketOf(tlsSocket, context)
}

// meshProtocols returns the application protocols (ALPN) that mutual TLS of the mesh offers. First
// come Istio's names, which its servers use to recognize their peers. Then comes the version of
// HTTP in use, because other servers reject connections that offer only unknown protocols. TCP most
// often carries HTTP/1 to servers that know application protocols; Istio's servers of TCP choose
// Istio's name. If the connection uses the protocol of the downstream client, no single name is
// right: servers, including Istio's, rely on the name that they choose, and would expect the other
// version of HTTP. docs/envoy.md describes the host's options.
func (u *Upstream) meshProtocols() []string {
	names := []string{peerExchange, inMesh}
	switch {
	case u.downstreamProtocol():
		return names
	case u.http2():
		return append(names, http2Protocol)
	default:
		return append(names, http1Protocol)
	}
}

// setForeignTLS sets the TLS context for certificates that are not the mesh's.
func (u *Upstream) setForeignTLS(common *tls.CommonTlsContext, t *networking.ClientTLSSettings) {
	if t.GetMode() == networking.ClientTLSSettings_MUTUAL {
		name := envoy.FileCertificateName(t.GetClientCertificate(), t.GetPrivateKey())
		if t.GetCredentialName() != "" {
			name = envoy.CredentialName(t.GetCredentialName())
		}
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{sds(name)}
	} else if u.Certificate != "" {
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{sds(envoy.CredentialName(u.Certificate))}
	}
	if t.GetInsecureSkipVerify().GetValue() {
		common.ValidationContextType = &tls.CommonTlsContext_ValidationContext{ValidationContext: &tls.CertificateValidationContext{}}
		return
	}
	v := verifying(u.subjectAltNames(t))
	roots := envoy.SystemRoots
	switch {
	case t.GetCredentialName() != "":
		roots = envoy.CredentialRootsName(t.GetCredentialName())
	case t.GetCaCertificates() != "":
		roots = envoy.FileRootsName(t.GetCaCertificates())
	}
	if t.GetCaCrl() != "" && t.GetCredentialName() == "" {
		v.Crl = &core.DataSource{Specifier: &core.DataSource_Filename{Filename: t.GetCaCrl()}}
	}
	validateWith(common, roots, v)
}

// subjectAltNames returns the names that servers may have: the names of the settings, or else those
// of the service.
func (u *Upstream) subjectAltNames(t *networking.ClientTLSSettings) []string {
	if names := t.GetSubjectAltNames(); len(names) > 0 {
		return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" || !utf8.ValidString(s) })
	}
	return u.names()
}

// names returns the names of the service and the identities of its endpoints. A workload of the mesh
// may have its identity in any alias of the mesh's trust domain.
func (u *Upstream) names() []string {
	known, aliases := subjectAltNames(u.Service, u.Identities), u.Mesh.GetTrustDomainAliases()
	if len(aliases) == 0 {
		return known
	}
	out := slices.Clone(known)
	for _, id := range known {
		rest, is := strings.CutPrefix(id, spiffe)
		domain, path, _ := strings.Cut(rest, "/")
		if is && (domain == u.Mesh.GetTrustDomain() || slices.Contains(aliases, domain)) {
			for _, alias := range aliases {
				out = append(out, spiffe+alias+"/"+path)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// spiffe is the prefix of identities.
const spiffe = "spiffe://"

// tlsParameters returns versions, curves and ciphers. TLS 1.3 is enabled; Envoy's default for
// clients does not enable it.
func (u *Upstream) tlsParameters(t *networking.ClientTLSSettings) *tls.TlsParameters {
	out := &tls.TlsParameters{
		TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3,
	}
	if t.GetMode() != networking.ClientTLSSettings_ISTIO_MUTUAL {
		out.EcdhCurves = u.Mesh.GetTlsDefaults().GetEcdhCurves()
		out.CipherSuites = cipherSuites(u.Mesh.GetTlsDefaults().GetCipherSuites())
	}
	return out
}

func socketOf(name string, config proto.Message) *core.TransportSocket {
	return &core.TransportSocket{Name: name, ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: packed(config)}}
}

// validateWith makes the CAs of a secret verify certificates.
func validateWith(c *tls.CommonTlsContext, roots string, v *tls.CertificateValidationContext) {
	c.ValidationContextType = &tls.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tls.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         v,
			ValidationContextSdsSecretConfig: sds(roots),
		},
	}
}

// socketForGRPC returns mutual TLS with the certificates of the client's bootstrap. SNI and subject
// alternative names of the policy are ignored (Istio 1.30).
func (u *Upstream) socketForGRPC() *core.TransportSocket {
	common := providerContext(verifyingForGRPC(u.names()))
	return socketOf(tlsSocket, &tls.UpstreamTlsContext{CommonTlsContext: common})
}

// providerContext returns TLS with the certificate and the authorities in the bootstrap of a gRPC
// client or server. The validation adds requirements for peers. The deprecated fields are for old
// clients; grpc-js rejects them without the new ones.
func providerContext(validation *tls.CertificateValidationContext) *tls.CommonTlsContext {
	provider := func(name string) *tls.CertificateProviderPluginInstance {
		return &tls.CertificateProviderPluginInstance{InstanceName: providerSocket, CertificateName: name}
	}
	deprecated := func(name string) *tls.CommonTlsContext_CertificateProviderInstance {
		return &tls.CommonTlsContext_CertificateProviderInstance{InstanceName: providerSocket, CertificateName: name}
	}
	validation.CaCertificateProviderInstance = provider(envoy.MeshRoots)
	combined := &tls.CommonTlsContext_CombinedCertificateValidationContext{DefaultValidationContext: validation}
	combined.ValidationContextCertificateProviderInstance = deprecated(envoy.MeshRoots) //nolint:staticcheck // see above
	common := &tls.CommonTlsContext{
		TlsCertificateProviderInstance: provider(envoy.WorkloadCertificate),
		ValidationContextType:          &tls.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: combined},
	}
	common.TlsCertificateCertificateProviderInstance = deprecated(envoy.WorkloadCertificate) //nolint:staticcheck // see above
	return common
}

// sds references a secret on the stream that also carries the referencing resource.
func sds(name string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: ADS()}
}
