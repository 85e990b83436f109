// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// TestUpstreamTLS: TLS and the PROXY protocol.
func TestUpstreamTLS(t *testing.T) {
	const passed = `{"trafficPolicy":{"loadBalancer":{"simple":"PASSTHROUGH"}},"subsets":[{"name":"v1","labels":{"version":"v1"}}]}`
	const original = `"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"10s","lbPolicy":"CLUSTER_PROVIDED","type":"ORIGINAL_DST"`
	checkClusters(t, []upstreamCase{
		{
			name: "simple TLS", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{`+system+`,`+params+`}}`) +
				optionsOf(http1+`,"upstreamHttpProtocolOptions":{"autoSanValidation":true,"autoSni":true}`),
		},
		{
			name: "simple TLS, unverified", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","insecureSkipVerify":true}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{`+params+`,"validationContext":{}}}`) +
				optionsOf(http1+`,"upstreamHttpProtocolOptions":{"autoSni":true}`),
		},
		{
			name: "simple TLS with names",
			rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"cart.example.com","subjectAltNames":["cart.example.com","spiffe://x/y"],"caCertificates":"/etc/ca.pem"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{
				"matchTypedSubjectAltNames":[{"sanType":"DNS","matcher":{"exact":"cart.example.com"}},{"sanType":"URI","matcher":{"exact":"spiffe://x/y"}}]},"validationContextSdsSecretConfig":{"name":"file-root:/etc/ca.pem"}},`+
				params+`},"sni":"cart.example.com"}`),
		},
		{
			name: "TLS on HTTP/2", change: protocol(registry.ProtocolGRPC), rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"alpnProtocols":["h2"],`+system+`,`+params+`},"sni":"s"}`) +
				optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{}}`),
		},
		{
			name: "mutual TLS, files",
			rule: `{"trafficPolicy":{"tls":{"mode":"MUTUAL","clientCertificate":"/etc/c.pem","privateKey":"/etc/k.pem","caCertificates":"/etc/ca.pem","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"file-root:/etc/ca.pem"}},"tlsCertificateSdsSecretConfigs":[{"name":"file-cert:/etc/c.pem~/etc/k.pem"}],`+
				params+`},"sni":"s"}`),
		},
		{name: "credentials without a selector", rule: `{"trafficPolicy":{"tls":{"mode":"MUTUAL","credentialName":"c"}}}`, want: least},
		{
			name: "credentials with a selector",
			rule: `{"workloadSelector":{"matchLabels":{"a":"b"}},"trafficPolicy":{"tls":{"mode":"MUTUAL","credentialName":"c","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"kubernetes://c-cacert"}},"tlsCertificateSdsSecretConfigs":[{"name":"kubernetes://c"}],`+params+`},"sni":"s"}`),
		},
		{
			name: "authorities for everybody", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","credentialName":"configmap://shop/ca","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"configmap://shop/ca-cacert"}},`+params+`},"sni":"s"}`),
		},
		{
			name: "credentials of a gateway", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","credentialName":"c","sni":"s"}}}`,
			change: func(u *xdsbuild.Upstream) { u.Gateway = true },
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"kubernetes://c-cacert"}},`+params+`},"sni":"s"}`),
		},
		{
			name: "TLS of the mesh", rule: `{"trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL","sni":"own.example.com","subjectAltNames":["spiffe://a/b"]}}}`,
			want: least + `,"transportSocket":` + meshTLS(`[{"sanType":"URI","matcher":{"exact":"spiffe://a/b"}}]`, "own.example.com"),
		},
		{
			name: "automatic TLS", mesh: `{}`,
			change: func(u *xdsbuild.Upstream) { u.Identities, u.MutualTLS = []string{"spiffe://x"}, true },
			want: least + `,"transportSocketMatches":[{"match":{"tlsMode":"istio"},"name":"tlsMode-istio","transportSocket":` +
				meshTLS(`[{"sanType":"URI","matcher":{"exact":"spiffe://x"}}]`, "outbound_.80_._.a.com") +
				`},{"match":{},"name":"tlsMode-disabled","transportSocket":{"name":"envoy.transport_sockets.raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}]`,
		},
		{
			name: "automatic TLS, with an alias of the trust domain", mesh: `{"trustDomain": "td", "trustDomainAliases": ["old", "older"]}`,
			change: func(u *xdsbuild.Upstream) {
				u.Identities, u.MutualTLS = []string{"spiffe://td/a"}, true
				u.Service.ServiceAccounts = []string{"a.example.com", "spiffe://old/c", "spiffe://other/d", "td/b"}
			},
			want: least + `,"transportSocketMatches":[{"match":{"tlsMode":"istio"},"name":"tlsMode-istio","transportSocket":` +
				meshTLS(`[{"sanType":"DNS","matcher":{"exact":"a.example.com"}},{"sanType":"URI","matcher":{"exact":"spiffe://old/a"}},
					{"sanType":"URI","matcher":{"exact":"spiffe://old/c"}},{"sanType":"URI","matcher":{"exact":"spiffe://older/a"}},
					{"sanType":"URI","matcher":{"exact":"spiffe://older/c"}},{"sanType":"URI","matcher":{"exact":"spiffe://other/d"}},
					{"sanType":"URI","matcher":{"exact":"spiffe://td/a"}},{"sanType":"DNS","matcher":{"exact":"td/b"}}]`, "outbound_.80_._.a.com") +
				`},{"match":{},"name":"tlsMode-disabled","transportSocket":{"name":"envoy.transport_sockets.raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}]`,
		},
		{name: "automatic TLS that no endpoint takes", mesh: `{}`, change: endpointWith("disabled"), want: least},
		{
			name: "automatic TLS that an endpoint takes", mesh: `{}`, change: endpointWith("istio"),
			want: least + `,"transportSocketMatches":[{"match":{"tlsMode":"istio"},"name":"tlsMode-istio","transportSocket":` +
				meshTLS("[]", "outbound_.80_._.a.com") +
				`},{"match":{},"name":"tlsMode-disabled","transportSocket":{"name":"envoy.transport_sockets.raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}]`,
		},
		{
			name: "automatic TLS, external", mesh: `{}`, want: least,
			change: func(u *xdsbuild.Upstream) { u.Service.MeshExternal, u.MutualTLS = true, true },
		},
		{
			name: "automatic TLS, disabled", mesh: `{}`, rule: `{"trafficPolicy":{"tls":{"mode":"DISABLE"}}}`, want: least,
			change: func(u *xdsbuild.Upstream) { u.MutualTLS = true },
		},
		{
			name: "TLS of the mesh that no endpoint takes", mesh: `{}`, rule: `{"trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`,
			change: endpointWith("disabled"), want: least + `,"transportSocket":` + meshTLS("[]", "outbound_.80_._.a.com"),
		},
		{
			name: "automatic TLS of a subset of a passthrough, that an endpoint does not take", mesh: `{}`, subset: "v1", rule: passed,
			change: endpointWith("disabled"), want: original,
		},
		{
			name: "automatic TLS of a subset of a passthrough, that all endpoints take", mesh: `{}`, subset: "v1", rule: passed,
			change: endpointWith("istio"), want: original + `,"transportSocket":` + meshTLS("[]", "outbound_.80_.v1_.a.com"),
		},
		{
			name: "PROXY protocol", rule: `{"trafficPolicy":{"proxyProtocol":{"version":"V2"}}}`,
			want: least + `,"transportSocket":{"name":"envoy.transport_sockets.upstream_proxy_protocol","typedConfig":{
				"@type":"type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport","config":{"version":"V2"},
				"transportSocket":{"name":"raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}}`,
		},
	})
}

// endpointWith gives the service an endpoint of a TLS mode.
func endpointWith(mode string) func(*xdsbuild.Upstream) {
	return func(u *xdsbuild.Upstream) {
		u.Endpoints = []*registry.Endpoint{{
			Addresses: []string{"10.0.0.1"}, EndpointPort: 80, ServicePortName: u.Port.Name, Shared: &registry.EndpointAttributes{TLSMode: mode},
		}}
	}
}

// TestMeshProtocols: mutual TLS of the mesh offers Istio's names, and then the version of
// HTTP that is spoken for certain.
func TestMeshProtocols(t *testing.T) {
	useClient := `"connectionPool":{"http":{"useClientProtocol":true}},`
	upgrade := `"connectionPool":{"http":{"h2UpgradePolicy":"UPGRADE"}},`
	for _, c := range []struct {
		name     string
		protocol registry.Protocol
		policy   string
		gateway  bool
		want     []string
	}{
		{"HTTP", registry.ProtocolHTTP, "", false, []string{"http/1.1"}},
		{"HTTP that is upgraded", registry.ProtocolHTTP, upgrade, false, []string{"h2"}},
		{"the client's", registry.ProtocolHTTP, useClient, false, nil},
		{"gRPC", registry.ProtocolGRPC, "", false, []string{"h2"}},
		{"unknown, from a sidecar", registry.ProtocolUnsupported, "", false, nil},
		{"unknown, from a gateway", registry.ProtocolUnsupported, "", true, []string{"http/1.1"}},
		{"TCP", registry.ProtocolTCP, "", false, []string{"http/1.1"}},
	} {
		u := upstream(t, service(registry.ClientSideLB), `{"trafficPolicy":{`+c.policy+`"tls":{"mode":"ISTIO_MUTUAL"}}}`, "", nil)
		u.Port.Protocol, u.Gateway = c.protocol, c.gateway
		var context tlsv3.UpstreamTlsContext
		if err := u.Cluster().GetTransportSocket().GetTypedConfig().UnmarshalTo(&context); err != nil {
			t.Fatal(err)
		}
		want := append([]string{"istio-peer-exchange", "istio"}, c.want...)
		check(t, c.name, context.GetCommonTlsContext().GetAlpnProtocols(), want)
	}
}

// TestKindsOfNames: the names that a server's certificate may have are compared with names of the
// same type.
func TestKindsOfNames(t *testing.T) {
	for name, want := range map[string][]tlsv3.SubjectAltNameMatcher_SanType{
		"spiffe://cluster.local/ns/shop/sa/cart": {tlsv3.SubjectAltNameMatcher_URI},
		"urn:shop:cart":                          {tlsv3.SubjectAltNameMatcher_URI},
		"cart.example.com":                       {tlsv3.SubjectAltNameMatcher_DNS},
		"*.example.com":                          {tlsv3.SubjectAltNameMatcher_DNS},
		"cart@example.com":                       {tlsv3.SubjectAltNameMatcher_EMAIL},
		"10.0.0.1":                               {tlsv3.SubjectAltNameMatcher_IP_ADDRESS, tlsv3.SubjectAltNameMatcher_DNS},
		"2001:db8::1":                            {tlsv3.SubjectAltNameMatcher_IP_ADDRESS, tlsv3.SubjectAltNameMatcher_DNS},
	} {
		context := xdsbuild.DownstreamTLS(&networking.Server{
			Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"},
			Tls: &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "c", SubjectAltNames: []string{name},
			},
		}, nil)
		var got []tlsv3.SubjectAltNameMatcher_SanType
		for _, m := range context.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			check(t, name+" is compared as", m.GetMatcher().GetExact(), name)
			got = append(got, m.GetSanType())
		}
		check(t, name+" is compared with", got, want)
	}
}
