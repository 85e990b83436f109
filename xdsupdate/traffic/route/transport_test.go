// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

const identity = "spiffe://mesh/ns/shop/sa/cart"

// vault has the secrets of a test by name: "own" with names of the certificate, and "roots".
type vault map[string]*tlsv3.Secret

func (v vault) secret(name string) (*tlsv3.Secret, error) {
	if s := v[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("no secret %s", name)
}

func (v vault) add(of *authority.Authority, name string, names ...string) {
	chain, key := of.Issue(names...)
	v[name] = &tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(chain), PrivateKey: inline(key)}}}
}

func (v vault) trust(name string, of *authority.Authority) {
	v[name] = &tlsv3.Secret{Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(of.PEM())}}}
}

func inline(b []byte) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: b}}
}

// common returns TLS settings with secrets, which may be "".
func common(certificate, roots string, validation *tlsv3.CertificateValidationContext) *tlsv3.CommonTlsContext {
	out := &tlsv3.CommonTlsContext{}
	if certificate != "" {
		out.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: certificate}}
	}
	if roots != "" {
		out.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext: validation, ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: roots},
		}}
	}
	return out
}

func names(of tlsv3.SubjectAltNameMatcher_SanType, name string) *tlsv3.CertificateValidationContext {
	return &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
		SanType: of, Matcher: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: name}},
	}}}
}

// endpointsOf returns the endpoints of a cluster with one endpoint and a TLS context, or plain text.
func endpointsOf(tb testing.TB, address string, context *tlsv3.UpstreamTlsContext, options *upstreams.HttpProtocolOptions) *route.Endpoints {
	tb.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	c := &clusterv3.Cluster{LoadAssignment: &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: at.IP.String(), PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(at.Port)}, //nolint:gosec // a port
			}}},
		}}}},
	}}}}
	if context != nil {
		c.TransportSocket = &core.TransportSocket{Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: packed(tb, context)}}
	}
	if options != nil {
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": packed(tb, options)}
	}
	return route.NewEndpoints("cart", c, nil)
}

func packed(tb testing.TB, m proto.Message) *anypb.Any {
	tb.Helper()
	out, err := anypb.New(m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// serve starts a server that says its protocol, the server name and the client's identity.
func serve(tb testing.TB, config *tls.Config) (address string) {
	tb.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := route.FromHTTP(r, 443)
		fmt.Fprintln(w, r.Proto, q.ServerName, q.Principal, q.Certificate)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	if s.TLS = config; config == nil {
		s.Start()
	} else {
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	tb.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// send sends a request and returns the response, or the error.
func send(tb testing.TB, by *route.Transport, to *route.Endpoints, authority string) (string, error) {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+authority+"/", nil)
	response, err := by.To(&route.Rule{}, to).RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), err
}

// TestTransport: a request reaches a server only if the server is the expected one.
func TestTransport(t *testing.T) {
	t.Parallel()
	own, other := authority.New(t), authority.New(t)
	secrets := vault{}
	secrets.trust("roots", own)
	secrets.add(own, "default", "spiffe://mesh/ns/edge/sa/gateway")
	pair := own.Pair("*.example.com", identity)
	https := serve(t, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: own.Pool()})
	foreign := serve(t, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{other.Pair("cart.example.com", identity)}})
	plain := serve(t, nil)
	certificate := sha256.Sum256(pair.Leaf.Raw)
	key := sha256.Sum256(pair.Leaf.RawSubjectPublicKeyInfo)
	auto := &upstreams.HttpProtocolOptions{UpstreamHttpProtocolOptions: &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true}}
	http2 := &upstreams.HttpProtocolOptions{UpstreamProtocolOptions: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{},
		},
	}}
	overHTTP2 := common("", "roots", nil)
	overHTTP2.AlpnProtocols = []string{"h2"}
	withCurves := common("", "roots", nil)
	withCurves.TlsParams = &tlsv3.TlsParameters{EcdhCurves: []string{"P-256"}, CipherSuites: []string{"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-RSA-AES128-GCM-SHA256]"}}
	noCurve := common("", "roots", nil)
	noCurve.TlsParams = &tlsv3.TlsParameters{EcdhCurves: []string{"B-571"}}
	for _, c := range []struct {
		name, address string
		common        *tlsv3.CommonTlsContext
		sni           string
		options       *upstreams.HttpProtocolOptions
		authority     string
		want          string // the response, or a part of the error after "!"
	}{
		{name: "plain text", address: plain, want: "HTTP/1.1   false"},
		{name: "plain text over HTTP/2", address: plain, options: http2, want: "HTTP/2.0   false"},
		{name: "verified by authorities", address: https, common: common("", "roots", nil), sni: "x", want: "HTTP/1.1 x  false"},
		{name: "over HTTP/2", address: https, common: overHTTP2, options: http2, sni: "x", want: "HTTP/2.0 x  false"},
		{name: "curves and cipher suites", address: https, common: withCurves, sni: "x", want: "HTTP/1.1 x  false"},
		{name: "no curve is left", address: https, common: noCurve, want: "!no curve of"},
		{name: "other authorities", address: foreign, common: common("", "roots", nil), want: "!unknown authority"},
		{name: "no authorities", address: foreign, common: common("", "", nil), sni: "x", want: "HTTP/1.1 x  false"},
		{name: "a missing secret", address: https, common: common("", "other", nil), want: `!the authorities "other": no secret other`},
		{name: "a missing certificate", address: https, common: common("other", "roots", nil), want: `!the certificate "other": no secret other`},
		{name: "a client certificate", address: https, common: common("default", "roots", nil), sni: "x", want: "HTTP/1.1 x spiffe://mesh/ns/edge/sa/gateway true"},
		{name: "an identity", address: https, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_URI, identity)), sni: "x", want: "HTTP/1.1 x  false"},
		{name: "another identity", address: https, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_URI, identity+"2")), want: "!none of the expected names"},
		{name: "an identity of other authorities", address: foreign, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_URI, identity)), want: "!unknown authority"},
		{name: "a name of a wildcard", address: https, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_DNS, "a.example.com")), sni: "x", want: "HTTP/1.1 x  false"},
		{name: "a name below a wildcard", address: https, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_DNS, "a.b.example.com")), want: "!none of the expected names"},
		{name: "the name of the wildcard", address: https, common: common("", "roots", names(tlsv3.SubjectAltNameMatcher_DNS, ".example.com")), want: "!none of the expected names"},
		{name: "the authority", address: https, common: common("", "roots", nil), options: auto, authority: "a.example.com:80", want: "HTTP/1.1 a.example.com  false"},
		{name: "another authority", address: https, common: common("", "roots", nil), options: auto, authority: "example.org", want: "!not for the host"},
		{
			name: "a hash", address: https, sni: "x", want: "HTTP/1.1 x  false",
			common: common("", "roots", &tlsv3.CertificateValidationContext{VerifyCertificateHash: []string{strings.ToUpper(hex.EncodeToString(certificate[:]))}}),
		},
		{
			name: "a key", address: https, sni: "x", want: "HTTP/1.1 x  false",
			common: common("", "roots", &tlsv3.CertificateValidationContext{
				VerifyCertificateSpki: []string{base64.StdEncoding.EncodeToString(key[:])}, VerifyCertificateHash: []string{"00"},
			}),
		},
		{
			name: "another hash", address: https, want: "!none of the expected hashes",
			common: common("", "roots", &tlsv3.CertificateValidationContext{VerifyCertificateHash: []string{"00"}}),
		},
		{
			name: "a revocation list", address: https, want: "!revocation lists",
			common: common("", "roots", &tlsv3.CertificateValidationContext{Crl: inline([]byte("x"))}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := &route.Transport{Secrets: secrets.secret}
			defer by.CloseIdleConnections()
			var context *tlsv3.UpstreamTlsContext
			if c.common != nil {
				context = &tlsv3.UpstreamTlsContext{CommonTlsContext: c.common, Sni: c.sni}
			}
			if c.authority == "" {
				c.authority = "cart"
			}
			got, err := send(t, by, endpointsOf(t, c.address, context, c.options), c.authority)
			if part, wrong := strings.CutPrefix(c.want, "!"); wrong != (err != nil) || wrong && !strings.Contains(err.Error(), part) || !wrong && got != c.want {
				t.Errorf("%q, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestTransportKeepsConnectionsApart: no connection that was verified for one peer serves requests
// for another, across the limit of pools, too.
func TestTransportKeepsConnectionsApart(t *testing.T) {
	t.Parallel()
	own := authority.New(t)
	secrets := vault{}
	secrets.trust("roots", own)
	address := serve(t, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own.Pair("*.example.com", identity)}})
	by := &route.Transport{Secrets: secrets.secret}
	defer by.CloseIdleConnections()
	to := func(name string) *route.Endpoints {
		return endpointsOf(t, address, &tlsv3.UpstreamTlsContext{CommonTlsContext: common("", "roots", names(tlsv3.SubjectAltNameMatcher_URI, name))}, nil)
	}
	for range 2 {
		if _, err := send(t, by, to(identity), "cart"); err != nil {
			t.Error(err)
		}
		if _, err := send(t, by, to(identity+"2"), "cart"); err == nil {
			t.Error("a connection to one identity serves requests for another")
		}
	}
	delete(secrets, "roots")
	same := to(identity)
	if _, err := send(t, by, same, "cart"); err == nil {
		t.Error("a new connection does without its secret")
	}
	secrets.trust("roots", own)
	if _, err := send(t, by, same, "cart"); err != nil {
		t.Error(err)
	}
	delete(secrets, "roots")
	if _, err := send(t, by, to(identity), "cart"); err != nil {
		t.Error("an equal state opens a new connection:", err)
	}
	patient := to(identity)
	patient.ConnectTimeout = time.Minute
	if _, err := send(t, by, patient, "cart"); err == nil {
		t.Error("a changed timeout has no effect")
	}

	secrets.trust("roots", own)
	auto := endpointsOf(t, address, &tlsv3.UpstreamTlsContext{CommonTlsContext: common("", "roots", nil)}, &upstreams.HttpProtocolOptions{
		UpstreamHttpProtocolOptions: &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true},
	})
	for range 2 {
		for host, fits := range map[string]bool{"a.example.com": true, "b.example.com": true, "example.org": false} {
			got, err := send(t, by, auto, host)
			if (err == nil) != fits || fits && !strings.Contains(got, host) {
				t.Errorf("%s: %q, %v", host, got, err)
			}
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 1000 { // the limit of pools
		to := &route.Endpoints{Cluster: strconv.Itoa(i), List: same.List}
		_, _ = by.To(&route.Rule{}, to).RoundTrip(httptest.NewRequestWithContext(ended, http.MethodGet, "http://cart/", nil)) //nolint:bodyclose // there is none
	}
	delete(secrets, "roots")
	if _, err := send(t, by, same, "cart"); err == nil {
		t.Error("1000 other pools keep the connections of the first one")
	}
}

// TestTransportRetries: endpoints that cannot be reached are tried as often as the rule says.
func TestTransportRetries(t *testing.T) {
	t.Parallel()
	by := &route.Transport{}
	defer by.CloseIdleConnections()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := endpointsOf(t, l.Addr().String(), nil, nil)
	_ = l.Close()
	open := endpointsOf(t, serve(t, nil), nil, nil)
	both := &route.Endpoints{Cluster: "cart", List: append(closed.List, open.List...)}
	rule := &route.Rule{Retries: &route.Retries{Attempts: 60}}
	for range 20 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://cart/", http.NoBody)
		response, err := by.To(rule, both).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://cart/", strings.NewReader("x"))
	if _, err := by.To(rule, closed).RoundTrip(r); err == nil { //nolint:bodyclose // there is none
		t.Error("a closed endpoint answers")
	}
	if _, err := by.To(rule, nil).RoundTrip(r); !errors.Is(err, route.ErrNoEndpoint) { //nolint:bodyclose // there is none
		t.Error(err)
	}
}

// TestServerConfig: a client is served only with the certificate that the server wants.
func TestServerConfig(t *testing.T) {
	t.Parallel()
	own, other := authority.New(t), authority.New(t)
	secrets := vault{}
	secrets.add(own, "cart", "cart.example.com")
	secrets.trust("roots", own)
	client, twice := own.Pair("client.example.com", identity), own.Pair("client.example.com", identity, identity+"2")
	foreign := other.Pair("client.example.com", identity)
	none := tls.Certificate{}
	untrusted := &tlsv3.CertificateValidationContext{TrustChainVerification: tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED}
	for _, c := range []struct {
		name     string
		common   *tlsv3.CommonTlsContext
		required bool
		client   tls.Certificate
		want     string // the identity that the server knows, or "!"
	}{
		{name: "no certificate wanted", common: common("cart", "", nil), client: client, want: " false"},
		{name: "optional", common: common("cart", "roots", nil), client: none, want: " false"},
		{name: "optional and given", common: common("cart", "roots", nil), client: client, want: identity + " true"},
		{name: "optional and foreign", common: common("cart", "roots", nil), client: foreign, want: "!"},
		{name: "required", common: common("cart", "roots", nil), required: true, client: none, want: "!"},
		{name: "required and given", common: common("cart", "roots", nil), required: true, client: client, want: identity + " true"},
		{name: "required and foreign", common: common("cart", "roots", nil), required: true, client: foreign, want: "!"},
		{name: "several identities", common: common("cart", "roots", nil), required: true, client: twice, want: "!"},
		{name: "untrusted", common: common("cart", "roots", untrusted), required: true, client: foreign, want: " false"},
		{name: "untrusted and missing", common: common("cart", "roots", untrusted), required: true, client: none, want: "!"},
		{name: "a name", common: common("cart", "roots", names(tlsv3.SubjectAltNameMatcher_DNS, "client.example.com")), client: client, want: identity + " true"},
		{name: "another name", common: common("cart", "roots", names(tlsv3.SubjectAltNameMatcher_DNS, "other.example.com")), client: client, want: "!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := &core.TransportSocket{Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: packed(t, &tlsv3.DownstreamTlsContext{
				CommonTlsContext: c.common, RequireClientCertificate: wrapperspb.Bool(c.required),
			})}}
			chain := xdsbuild.FilterChain([]string{"cart.example.com"}, nil, xdsbuild.GatewayConnectionManager("https", registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{}))
			chain.TransportSocket = socket
			router := route.New(route.Gateway, listeners{"0.0.0.0_443": xdsbuild.GatewayListener{Bind: "0.0.0.0", Port: 443, TLS: true}.Build([]*listenerv3.FilterChain{chain})})
			address := serve(t, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				by := router.Handshake(route.Request{Port: 443, TLS: true, ServerName: hello.ServerName})
				if by == nil {
					return nil, errors.New("no server")
				}
				return by.Config(secrets.secret)
			}})
			transport := &http.Transport{DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&tls.Dialer{Config: &tls.Config{
					MinVersion: tls.VersionTLS12, RootCAs: own.Pool(), ServerName: "cart.example.com",
					GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.client, nil },
				}}).DialContext(ctx, network, address)
			}}
			defer transport.CloseIdleConnections()
			response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://cart.example.com/", nil))
			if err != nil {
				if c.want != "!" {
					t.Error(err)
				}
				return
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if got := strings.TrimPrefix(strings.TrimSuffix(string(body), "\n"), "HTTP/1.1 cart.example.com "); got != c.want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
