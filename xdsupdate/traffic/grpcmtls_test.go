// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	next int64
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{t: tb, next: 2}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return a
}

// issue writes a certificate for an identity, its key and the root into a directory,
// each by a rename, and returns the serial number.
func (a *authority) issue(dir, identity string) int64 {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	id, err := url.Parse(identity)
	if err != nil {
		a.t.Fatal(err)
	}
	serial := a.next
	a.next++
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), URIs: []*url.URL{id}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(dir, "key.pem", "PRIVATE KEY", private)
	a.write(dir, "cert.pem", "CERTIFICATE", der)
	a.write(dir, "ca.pem", "CERTIFICATE", a.cert.Raw)
	return serial
}

func (a *authority) write(dir, name, kind string, der []byte) {
	a.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		a.t.Fatal(err)
	}
}

// providers is the part of a bootstrap that names the certificates.
func providers(dir string) string {
	return fmt.Sprintf(`, "certificate_providers": {"default": {"plugin_name": "file_watcher", "config": {
		"certificate_file": %q, "private_key_file": %q, "ca_certificate_file": %q, "refresh_interval": "0.050s"}}},
		"server_listener_resource_name_template": "inbound/%%s"`,
		filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"))
}

// inbound is the listener of an xDS-enabled server, which a program makes: what comes
// into workloads is no matter of the traffic policies.
func inbound(address string) *listenerv3.Listener {
	ip, port, _ := net.SplitHostPort(address)
	number := uint32(0)
	_, _ = fmt.Sscan(port, &number)
	provider := func(name string) *tlsv3.CertificateProviderPluginInstance {
		return &tlsv3.CertificateProviderPluginInstance{InstanceName: "default", CertificateName: name}
	}
	manager := &hcm.HttpConnectionManager{
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "inbound", VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
			}}}},
		}},
		HttpFilters: []*hcm.HttpFilter{{
			Name: "envoy.filters.http.router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})},
		}},
		StatPrefix: "inbound",
	}
	context := &tlsv3.DownstreamTlsContext{
		RequireClientCertificate: wrapperspb.Bool(true),
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsCertificateProviderInstance: provider("default"),
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
				CaCertificateProviderInstance: provider("ROOTCA"),
			}},
		},
	}
	return &listenerv3.Listener{
		Name: "inbound/" + address,
		Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
			Address: ip, PortSpecifier: &core.SocketAddress_PortValue{PortValue: number},
		}}},
		FilterChains: []*listenerv3.FilterChain{{
			Name: "all",
			Filters: []*listenerv3.Filter{{
				Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(manager)},
			}},
			TransportSocket: &core.TransportSocket{
				Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(context)},
			},
		}},
	}
}

func pack(m proto.Message) *anypb.Any {
	out, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return out
}

const identity = "spiffe://cluster.local/ns/shop/sa/quotes"

// startSecure starts a backend that is an xDS-enabled server with certificates.
func (m *mesh) startSecure(listener net.Listener, dir string) *backend {
	m.t.Helper()
	b := &backend{name: "secure", endpoint: newEndpoint(nil)}
	b.endpoint.Addresses, b.endpoint.EndpointPort = splitAddress(m.t, listener.Addr().String())
	b.endpoint.Shared.ServiceAccount, b.endpoint.Shared.TLSMode = identity, "istio"
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	m.must(err)
	server, err := xds.NewGRPCServer(grpc.Creds(creds), xds.BootstrapContentsForTesting(m.bootstrap("server", "{}", providers(dir))),
		// New connections show new certificates.
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 50 * time.Millisecond, MaxConnectionAgeGrace: 10 * time.Second}))
	m.must(err)
	healthpb.RegisterHealthServer(server, b)
	testserver.Serve(m.t, listener, server)
	return b
}

// serialOf returns the serial number of the certificate that a call's server had.
func (m *mesh) serialOf(client healthpb.HealthClient) int64 {
	m.t.Helper()
	var p peer.Peer
	if _, err := m.call(client, "", grpc.Peer(&p)); err != nil {
		m.t.Fatal(err)
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		m.t.Fatalf("the connection is %T", p.AuthInfo)
	}
	return info.State.PeerCertificates[0].SerialNumber.Int64()
}

// TestMutualTLSOfRealCalls: a client and a server with the certificates of their
// bootstraps talk to each other by ISTIO_MUTUAL. Certificates of both are replaced
// while calls are made, and none fails; then the server has another identity than
// the registry says, and is refused.
func TestMutualTLSOfRealCalls(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := startMesh(t, traffic.Options{})
	l := inbound(listener.Addr().String())
	if err := m.server.SetResource(l.GetName(), l); err != nil {
		t.Fatal(err)
	}
	ca, servers, clients := newAuthority(t), t.TempDir(), t.TempDir()
	first := ca.issue(servers, identity)
	ca.issue(clients, "spiffe://cluster.local/ns/shop/sa/client")
	b := m.startSecure(listener, servers)
	m.place(b)
	m.apply(istio.DestinationRule, "quotes", `{"host":"`+host+`","trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`)

	creds, err := xdscreds.NewClientCredentials(xdscreds.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	m.must(err)
	builder, err := xds.NewXDSResolverWithConfigForTesting(m.bootstrap("client", "{}", providers(clients)))
	m.must(err)
	conn, err := grpc.NewClient("xds:///"+host+":80", grpc.WithResolvers(builder), grpc.WithTransportCredentials(creds))
	m.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	client := healthpb.NewHealthClient(conn)

	if got := m.serialOf(client); got != first {
		t.Errorf("certificate %d, want %d", got, first)
	}
	for range 3 {
		next := ca.issue(servers, identity)
		ca.issue(clients, "spiffe://cluster.local/ns/shop/sa/client")
		m.until("the new certificate", func() bool { return m.serialOf(client) == next })
	}
	m.refused()

	plain := m.client("r/z", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if _, err := plain.Check(m.ctx, &healthpb.HealthCheckRequest{}); err == nil {
		t.Error("a client without certificates is served")
	}
	ca.issue(servers, "spiffe://cluster.local/ns/shop/sa/other")
	m.until("the server to be refused", func() bool {
		_, err := client.Check(m.ctx, &healthpb.HealthCheckRequest{})
		return err != nil && strings.Contains(err.Error(), "SAN")
	})
}
