// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// startTLS starts the program with TLS. The function dial connects to it with a certificate for an
// identity.
func startTLS(t *testing.T, args ...string) (p *program, dial func(identity string) *grpc.ClientConn) {
	t.Helper()
	ca, dir := authority.New(t), t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := ca.Issue("discovery.example.com")
	p = start(t, append(args, "-tls-cert", write("server.pem", certificate), "-tls-key", write("server.key", key),
		"-tls-client-ca", write("clients.pem", ca.PEM()))...).serving()
	return p, func(identity string) *grpc.ClientConn {
		t.Helper()
		conn, err := grpc.NewClient(p.xds, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: ca.Pool(), ServerName: "discovery.example.com", Certificates: []tls.Certificate{ca.Pair(identity)}, MinVersion: tls.VersionTLS12,
		})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

// TestTLS: clients have the identities of their certificates, and only operators may use CSDS.
func TestTLS(t *testing.T) {
	p, dial := startTLS(t, "-dir", directory(t, 1))
	proxy := dial("spiffe://cluster.local/ns/demo/sa/default")
	for namespace, want := range map[string]codes.Code{"demo": codes.OK, "other": codes.PermissionDenied} {
		client := xdstest.NewClient(proxy, xdstest.ClientOptions{Node: &core.Node{Id: "sidecar~127.0.0.1~a." + namespace + "~" + namespace + ".svc.cluster.local"}})
		if err := client.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := client.Subscribe(envoy.ClusterType); err != nil {
			t.Fatal(err)
		}
		_, err := client.Next(t.Context())
		if got := status.Code(err); got != want {
			t.Errorf("namespace %s: %v, want %v", namespace, err, want)
		}
		client.Close()
	}
	for identity, want := range map[string]codes.Code{
		"spiffe://cluster.local/ns/demo/sa/default": codes.PermissionDenied, "spiffe://cluster.local/ns/istio-system/sa/operator": codes.OK,
	} {
		csds := statusv3.NewClientStatusDiscoveryServiceClient(dial(identity))
		if _, err := csds.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); status.Code(err) != want {
			t.Errorf("CSDS for %s: %v, want %v", identity, err, want)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// TestControlPlanes: of the clients that claim to be control planes, only the identities in
// -control-planes get configs.
func TestControlPlanes(t *testing.T) {
	p, dial := startTLS(t, "-dir", directory(t, 3), "-control-planes",
		"spiffe://cluster.local/ns/other/sa/istiod,spiffe://cluster.local/ns/istio-system/sa/istiod")
	generator, err := structpb.NewStruct(map[string]any{"GENERATOR": "api"})
	if err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string]int{"istiod": 3, "default": 0} {
		client := xdstest.NewClient(dial("spiffe://cluster.local/ns/istio-system/sa/"+account), xdstest.ClientOptions{
			Node: &core.Node{Id: "sidecar~127.0.0.1~istiod.istio-system~istio-system.svc.cluster.local", Metadata: generator},
		})
		if err := client.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := client.Subscribe(istio.ServiceEntry.String()); err != nil {
			t.Fatal(err)
		}
		response, err := client.Next(t.Context())
		if got := len(response.Resources); err != nil || got != want {
			t.Errorf("%s was sent %d objects (%v), want %d", account, got, err, want)
		}
		client.Close()
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
