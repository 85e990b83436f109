// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// server is a server of a Gateway.
func server(protocol string, hosts []string, tls *networking.ServerTLSSettings) *networking.Server {
	return &networking.Server{Port: &networking.Port{Number: 443, Name: "p", Protocol: protocol}, Hosts: hosts, Tls: tls}
}

// httpsChain is the filter chain of an HTTPS server.
func httpsChain(routes string, s *networking.Server) *listenerv3.FilterChain {
	names, _ := xdsbuild.ServerNames(s.GetHosts())
	return xdsbuild.FilterChain(names, xdsbuild.DownstreamTLS(s, nil),
		xdsbuild.GatewayConnectionManager(routes, registry.ProtocolHTTPS, nil, xdsbuild.HTTPOptions{}))
}

func gatewayTopology(t *meshconfig.Topology) *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{DefaultConfig: &meshconfig.ProxyConfig{GatewayTopology: t}}
}

func httpChain(routes string, mesh *meshconfig.MeshConfig) []*listenerv3.FilterChain {
	return []*listenerv3.FilterChain{
		xdsbuild.FilterChain(nil, nil, xdsbuild.GatewayConnectionManager(routes, registry.ProtocolHTTP, mesh, xdsbuild.HTTPOptions{})),
	}
}

func tcpChain(p xdsbuild.TCPProxy) []*listenerv3.FilterChain {
	return []*listenerv3.FilterChain{xdsbuild.FilterChain(nil, nil, p.Filter())}
}

// TestGatewayListeners compares listeners with recordings from Istio, in testdata/gateway, with the
// reductions of the recordings, and with the successors of deprecated fields.
func TestGatewayListeners(t *testing.T) {
	wildcard := "0.0.0.0"
	https := xdsbuild.GatewayListener{Bind: wildcard, Port: 443, TLS: true}
	tests := map[string]struct {
		listener xdsbuild.GatewayListener
		chains   []*listenerv3.FilterChain
	}{
		"http": {xdsbuild.GatewayListener{Bind: wildcard, Port: 80}, httpChain("http.80", nil)},
		"topology": {xdsbuild.GatewayListener{Bind: wildcard, Port: 80}, httpChain("http.80", gatewayTopology(&meshconfig.Topology{
			NumTrustedProxies: 2, ForwardClientCertDetails: meshconfig.ForwardClientCertDetails_SANITIZE,
		}))},
		"proxy-protocol": {xdsbuild.GatewayListener{Bind: wildcard, Port: 80, ProxyProtocol: true}, httpChain("http.80", nil)},
		"mutual": {https, []*listenerv3.FilterChain{
			httpsChain("https.443.https-b.edge.ingress", server("HTTPS", []string{"b.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_OPTIONAL_MUTUAL, CredentialName: "b-cert",
			})),
			httpsChain("https.443.https.edge.ingress", server("HTTPS", []string{"shop.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "shop-cert", SubjectAltNames: []string{"client.example.com"},
			})),
		}},
		"credential-names": {https, []*listenerv3.FilterChain{
			httpsChain("https.443.https.edge.ingress", server("HTTPS", []string{"shop.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_SIMPLE, CredentialNames: []string{"rsa", "ecdsa"},
			})),
		}},
		"files": {https, []*listenerv3.FilterChain{
			httpsChain("https.443.https-m.edge.ingress", server("https", []string{"m.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_MUTUAL, CaCertificates: "/etc/ca.pem",
				ServerCertificate: "/etc/c.pem", PrivateKey: "/etc/k.pem",
			})),
			httpsChain("https.443.https.edge.ingress", server("HTTPS", []string{"Shop.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_SIMPLE, TlsCertificates: []*networking.ServerTLSSettings_TLSCertificate{
					{ServerCertificate: "/etc/c.pem", PrivateKey: "/etc/k.pem"},
				},
			})),
		}},
		"minimum-version": {https, []*listenerv3.FilterChain{
			httpsChain("https.443.https.edge.ingress", server("HTTPS", []string{"*.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "c3", MinProtocolVersion: networking.ServerTLSSettings_TLSV1_2,
			})),
		}},
		"istio-mutual-tcp": {xdsbuild.GatewayListener{Bind: wildcard, Port: 15443, TLS: true}, []*listenerv3.FilterChain{
			xdsbuild.FilterChain(nil, xdsbuild.DownstreamTLS(server("TLS", []string{"*"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_ISTIO_MUTUAL,
			}), nil), xdsbuild.TCPProxy{Cluster: "outbound|5432||db.shop.svc.cluster.local"}.Filter()),
		}},
		"tcp-destinationrule": {xdsbuild.GatewayListener{Bind: wildcard, Port: 5432}, tcpChain(xdsbuild.TCPProxy{
			Cluster: "outbound|5432|v1|db.shop.svc.cluster.local", IdleTimeout: durationpb.New(45e9), HashSourceIP: true,
		})},
		"tcp-weights": {xdsbuild.GatewayListener{Bind: wildcard, Port: 5432}, tcpChain(xdsbuild.TCPProxy{Shares: []xdsbuild.ClusterShare{
			{"outbound|5432||db.shop.svc.cluster.local", 10}, {"unused", 0}, {"outbound|5672||mq.shop.svc.cluster.local", 90},
		}})},
		"passthrough-and-terminate": {https, []*listenerv3.FilterChain{
			xdsbuild.FilterChain([]string{"mq.example.com"}, nil, xdsbuild.TCPProxy{Cluster: "outbound|5671||mq.shop.svc.cluster.local"}.Filter()),
			httpsChain("https.443.https.edge.ingress", server("HTTPS", []string{"shop.example.com"}, &networking.ServerTLSSettings{
				Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "c",
			})),
		}},
		"auto-passthrough": {xdsbuild.GatewayListener{Bind: wildcard, Port: 15443, TLS: true}, []*listenerv3.FilterChain{
			xdsbuild.AutoPassthroughChain("outbound_.80_._.cart.shop.svc.cluster.local"),
			xdsbuild.AutoPassthroughChain("outbound_.80_.v1_.cart.shop.svc.cluster.local"),
			xdsbuild.AutoPassthroughChain("outbound_.80_.v2_.cart.shop.svc.cluster.local"),
		}},
	}
	recorded, err := os.ReadDir("testdata/gateway")
	if err != nil || len(recorded) != len(tests) {
		t.Fatalf("%d recordings for %d tests: %v", len(recorded), len(tests), err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := tc.listener.Build(tc.chains)
			if err := envoycheck.Envoy(l); err != nil {
				t.Error(err)
			}
			got, err := protojson.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("testdata/gateway/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "the listener", reduced(t, got), reduced(t, want))
		})
	}
}

// reduced returns a resource in the form of the recordings: without parts that do not affect
// traffic, and with only the names of filters whose configuration is empty except for its type. The
// recordings do not strip the trailing dot of a host.
func reduced(t *testing.T, text []byte) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return reduce(out)
}

func reduce(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = reduce(v[i])
		}
	case map[string]any:
		for _, key := range []string{"statPrefix", "sdsConfig", "trafficDirection", "configSource", "stripTrailingHostDot"} {
			delete(v, key)
		}
		for key := range v {
			v[key] = reduce(v[key])
		}
		if typed, ok := v["typedConfig"].(map[string]any); ok && len(typed) == 1 {
			delete(v, "typedConfig")
		}
	}
	return v
}

func TestNoGatewayListener(t *testing.T) {
	if l := (xdsbuild.GatewayListener{Bind: "0.0.0.0", Port: 80}).Build(nil); l != nil {
		t.Errorf("a listener without filter chains: %v", l)
	}
	for _, p := range []xdsbuild.TCPProxy{{}, {Shares: []xdsbuild.ClusterShare{{"a", 0}}}} {
		if f := p.Filter(); f != nil {
			t.Errorf("a TCP proxy to nothing: %v", f)
		}
	}
	for _, s := range []*networking.Server{
		server("HTTP", nil, nil), server("HTTPS", nil, nil), server("HTTPS", nil, &networking.ServerTLSSettings{}),
		server("TLS", nil, &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH}),
		server("TLS", nil, &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE}),
		server("HTTP", nil, &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "c"}),
	} {
		if tls := xdsbuild.DownstreamTLS(s, nil); tls != nil {
			t.Errorf("TLS context of %v: %v", s, tls)
		}
	}
}

func TestUnixGatewayListener(t *testing.T) {
	l := xdsbuild.GatewayListener{Bind: "unix:///run/gw.sock"}.Build(httpChain("http.0", nil))
	check(t, "address", l.GetAddress().GetPipe().GetPath(), "/run/gw.sock")
	check(t, "name", l.GetName(), "unix:///run/gw.sock_0")
	check(t, "validation", envoycheck.Envoy(l), nil)
}

// TestRequestedCertificates: the requirements for a client certificate in addition to its
// authorities.
func TestRequestedCertificates(t *testing.T) {
	tls := xdsbuild.DownstreamTLS(server("TLS", []string{"*"}, &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_MUTUAL, CaCertificates: "/ca", CaCrl: "/crl",
		ServerCertificate: "/c", PrivateKey: "/k", VerifyCertificateSpki: []string{strings.Repeat("A", 43) + "="},
		VerifyCertificateHash: []string{strings.Repeat("ab", 32)}, InsecureSkipVerify: wrapperspb.Bool(true),
	}), nil)
	combined := tls.GetCommonTlsContext().GetCombinedValidationContext()
	check(t, "roots", combined.GetValidationContextSdsSecretConfig().GetName(), "file-root:/ca")
	v := combined.GetDefaultValidationContext()
	check(t, "revocation list", v.GetCrl().GetFilename(), "/crl")
	check(t, "hashes", len(v.GetVerifyCertificateHash())+len(v.GetVerifyCertificateSpki()), 2)
	check(t, "verification", v.GetTrustChainVerification().String(), "ACCEPT_UNTRUSTED")
	check(t, "ALPN of what is not HTTP", tls.GetCommonTlsContext().GetAlpnProtocols(), []string(nil))
	check(t, "validation", envoycheck.Envoy(tls), nil)

	tls = xdsbuild.DownstreamTLS(server("HTTPS", nil, &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "a", CaCertCredentialName: "b", CaCrl: "/crl",
	}), nil)
	combined = tls.GetCommonTlsContext().GetCombinedValidationContext()
	check(t, "roots", combined.GetValidationContextSdsSecretConfig().GetName(), "kubernetes://b-cacert")
	check(t, "a revocation list beside a credential", combined.GetDefaultValidationContext().GetCrl() == nil, true)

	tls = xdsbuild.DownstreamTLS(server("HTTPS", nil, &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "a", SubjectAltNames: []string{"b"},
	}), nil)
	check(t, "names of clients that no authority verifies", tls.GetCommonTlsContext().GetValidationContextType() == nil, true)
}

func TestServerParameters(t *testing.T) {
	defaults := &meshconfig.MeshConfig{TlsDefaults: &meshconfig.MeshConfig_TLSConfig{
		MinProtocolVersion: meshconfig.MeshConfig_TLSConfig_TLSV1_3,
		EcdhCurves:         []string{"P-256"}, CipherSuites: []string{"AES128-SHA"},
	}}
	for _, tc := range []struct {
		name string
		tls  *networking.ServerTLSSettings
		mesh *meshconfig.MeshConfig
		want string
	}{
		{"nothing", &networking.ServerTLSSettings{}, nil, "<nil>"},
		{
			"the mesh's", &networking.ServerTLSSettings{}, defaults,
			`tls_minimum_protocol_version:TLSv1_3 cipher_suites:"AES128-SHA" ecdh_curves:"P-256"`,
		},
		{
			"the server's", &networking.ServerTLSSettings{
				MinProtocolVersion: networking.ServerTLSSettings_TLSV1_1, MaxProtocolVersion: networking.ServerTLSSettings_TLSV1_2,
				CipherSuites: []string{"x", "AES256-SHA", "AES256-SHA", "!ALL", "[AES128-SHA|AES256-SHA]", "[AES128-SHA|x]", ""},
			}, defaults,
			`tls_minimum_protocol_version:TLSv1_1 tls_maximum_protocol_version:TLSv1_2 ` +
				`cipher_suites:"AES256-SHA" cipher_suites:"[AES128-SHA|AES256-SHA]" ecdh_curves:"P-256"`,
		},
		{
			"the server's maximum below the mesh's minimum",
			&networking.ServerTLSSettings{MaxProtocolVersion: networking.ServerTLSSettings_TLSV1_2}, defaults,
			`tls_minimum_protocol_version:TLSv1_2 tls_maximum_protocol_version:TLSv1_2 cipher_suites:"AES128-SHA" ecdh_curves:"P-256"`,
		},
	} {
		for _, mode := range []networking.ServerTLSSettings_TLSmode{networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_ISTIO_MUTUAL} {
			tc.tls.Mode, tc.tls.CredentialName = mode, "c"
			tls := xdsbuild.DownstreamTLS(server("HTTPS", nil, tc.tls), tc.mesh)
			got := strings.ReplaceAll(tls.GetCommonTlsContext().GetTlsParams().String(), "  ", " ")
			check(t, fmt.Sprint(tc.name, ", ", mode), got, tc.want)
		}
	}
}

func TestServerNames(t *testing.T) {
	for _, tc := range []struct {
		hosts, want []string
		ok          bool
	}{
		{[]string{"B.com", "*.a.com", "b.com."}, []string{"*.a.com", "b.com"}, true},
		{[]string{"b.com", "*"}, nil, true},
		{[]string{"*a.com", "a.*.com", ""}, nil, false},
		{nil, nil, false},
	} {
		got, ok := xdsbuild.ServerNames(tc.hosts)
		if !slices.Equal(got, tc.want) || ok != tc.ok {
			t.Errorf("ServerNames(%q) = %q, %t; want %q, %t", tc.hosts, got, ok, tc.want, tc.ok)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for name, want := range map[string]envoy.SecretName{
		envoy.CredentialName("c"):                     {Credential: "c"},
		envoy.CredentialName("kubernetes://c"):        {Credential: "c"},
		envoy.CredentialRootsName("c"):                {Credential: "c", Roots: true},
		envoy.FileCertificateName("/etc/c", "/etc/k"): {Certificate: "/etc/c", Key: "/etc/k"},
		envoy.FileRootsName("/etc/ca"):                {Authorities: "/etc/ca", Roots: true},
		envoy.SystemRoots:                             {Authorities: "system", Roots: true},
		envoy.WorkloadCertificate:                     {},
		envoy.MeshRoots:                               {Roots: true},
		envoy.CredentialName("builtin://"):            {},
		envoy.CredentialRootsName("builtin://"):       {Roots: true},
	} {
		got, ok := envoy.ParseSecretName(name)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("ParseSecretName(%q) ok %t (-want +got):\n%s", name, ok, diff)
		}
	}
	for _, name := range []string{"", "c", "kubernetes://", "kubernetes://-cacert", "file-cert:a", "file-cert:a~", "file-cert:~k", "file-cert:a~b~c", "file-root:"} {
		if got, ok := envoy.ParseSecretName(name); ok {
			t.Errorf("ParseSecretName(%q) = %+v, want none", name, got)
		}
	}
}

// TestGatewayHeaders: headers that the mesh configuration asks for or turns off.
func TestGatewayHeaders(t *testing.T) {
	off := &meshconfig.ProxyConfig_ProxyHeaders{
		Server:    &meshconfig.ProxyConfig_ProxyHeaders_Server{Disabled: wrapperspb.Bool(true), Value: "x"},
		RequestId: &meshconfig.ProxyConfig_ProxyHeaders_RequestId{Disabled: wrapperspb.Bool(true)}, EnvoyDebugHeaders: &meshconfig.ProxyConfig_ProxyHeaders_EnvoyDebugHeaders{Disabled: wrapperspb.Bool(true)},
	}
	on := &meshconfig.ProxyConfig_ProxyHeaders{
		Server: &meshconfig.ProxyConfig_ProxyHeaders_Server{Value: "shop"}, XForwardedPort: &meshconfig.ProxyConfig_ProxyHeaders_XForwardedPort{Enabled: wrapperspb.Bool(true)},
	}
	bad := &meshconfig.ProxyConfig_ProxyHeaders{Server: &meshconfig.ProxyConfig_ProxyHeaders_Server{Value: "a\nb"}}
	type result struct {
		transformation      string
		server              string
		noID, noDebug, port bool
	}
	for _, tc := range []struct {
		name    string
		headers *meshconfig.ProxyConfig_ProxyHeaders
		want    result
	}{
		{"nothing", nil, result{transformation: "OVERWRITE"}},
		{"turned off", off, result{transformation: "PASS_THROUGH", noID: true, noDebug: true}},
		{"asked for", on, result{transformation: "OVERWRITE", server: "shop", port: true}},
		{"no header", bad, result{transformation: "OVERWRITE"}},
	} {
		f := xdsbuild.GatewayConnectionManager("r", registry.ProtocolHTTP, &meshconfig.MeshConfig{DefaultConfig: &meshconfig.ProxyConfig{ProxyHeaders: tc.headers}}, xdsbuild.HTTPOptions{})
		var m hcm.HttpConnectionManager
		var last router.Router
		if err := errors.Join(f.GetTypedConfig().UnmarshalTo(&m), m.GetHttpFilters()[len(m.GetHttpFilters())-1].GetTypedConfig().UnmarshalTo(&last)); err != nil {
			t.Fatal(err)
		}
		got := result{
			m.GetServerHeaderTransformation().String(), m.GetServerName(),
			m.GetGenerateRequestId() != nil && !m.GetGenerateRequestId().GetValue(), last.GetSuppressEnvoyHeaders(), m.GetAppendXForwardedPort(),
		}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestPathNormalization and the forwarding of client certificates.
func TestGatewayHTTPSettings(t *testing.T) {
	for normalization, want := range map[meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType]string{
		meshconfig.MeshConfig_ProxyPathNormalization_NONE:                     `"normalizePath":false`,
		meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES:            `"mergeSlashes":true`,
		meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES: `"pathWithEscapedSlashesAction":"UNESCAPE_AND_FORWARD"`,
	} {
		f := xdsbuild.GatewayConnectionManager("r", registry.ProtocolGRPCWeb, &meshconfig.MeshConfig{
			PathNormalization: &meshconfig.MeshConfig_ProxyPathNormalization{Normalization: normalization},
		}, xdsbuild.HTTPOptions{})
		text, err := protojson.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{want, "envoy.filters.http.grpc_web", "SANITIZE_SET"} {
			if !strings.Contains(strings.ReplaceAll(string(text), " ", ""), part) {
				t.Errorf("%s: no %s in %s", normalization, part, text)
			}
		}
	}
}
