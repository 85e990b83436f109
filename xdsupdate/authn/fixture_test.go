// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const (
	serverName  = "control-plane.example.com"
	testTimeout = time.Minute
)

// spiffe returns the SPIFFE ID of the service account "web" of a namespace.
func spiffe(namespace string) string { return "spiffe://example.org/ns/" + namespace + "/sa/web" }

// files are the files of a server, which a test rotates.
type files struct {
	t *testing.T
	authn.Files
}

func newFiles(t *testing.T, server, clients *authority.Authority) *files {
	t.Helper()
	dir := t.TempDir()
	f := &files{t, authn.Files{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Authorities: filepath.Join(dir, "ca.crt"),
	}}
	certificate, key := server.Issue(serverName)
	f.write(f.Certificate, certificate)
	f.write(f.Key, key)
	f.write(f.Authorities, clients.PEM())
	return f
}

func (f *files) write(path string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

// plane is a control plane by TLS on a network in memory, so that it can be in a bubble.
type plane struct {
	*ads.Server
	t         *testing.T
	authority *authority.Authority
	files     *files
	tls       *authn.TLS
	clients   *authn.Authenticator
	grpc      *grpc.Server
	listener  *memnet.Listener
	log       *lockedBuffer
}

// planeOptions are the options of a plane. The zero value works.
type planeOptions struct {
	authn authn.Options
	tls   authn.TLSOptions
	// noTLS: it serves without TLS.
	noTLS bool
	// observer is that of the server.
	observer ads.Observer
	// register adds services to the port.
	register func(p *plane)
}

// startPlane serves one service for everybody and one in each of the namespaces a and b,
// for that alone, until the test ends.
func startPlane(t *testing.T, o planeOptions) *plane {
	t.Helper()
	p := &plane{t: t, authority: authority.New(t), listener: memnet.Listen(), log: new(lockedBuffer)}
	logger := slog.New(slog.NewTextHandler(p.log, nil))
	p.files = newFiles(t, p.authority, p.authority)
	o.tls.Files, o.tls.Logger, o.authn.Logger = p.files.Files, logger, logger
	if o.authn.TrustDomains == nil {
		o.authn.TrustDomains = []string{"example.org"}
	}
	var err error
	if p.tls, err = authn.NewTLS(o.tls); err != nil {
		t.Fatal(err)
	}
	p.clients = authn.New(o.authn)
	registries := aggregate.NewController()
	p.Server = ads.New(registries, ads.Options{Proxy: p.clients.Proxy, Logger: logger, Observer: o.observer})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		services := memory.New(memory.Options{Updater: updater})
		define(t, services)
		return services
	})
	options := ads.ServerOptions()
	if !o.noTLS {
		options = append(options, grpc.Creds(p.tls.Credentials()))
	}
	p.grpc = grpc.NewServer(options...)
	p.Register(p.grpc)
	if o.register != nil {
		o.register(p)
	}
	testserver.Serve(t, p.listener, p.grpc, registries.Run, p.Run, p.tls.Run)
	return p
}

// define adds the services of a plane to a registry.
func define(t *testing.T, services *memory.Registry) {
	t.Helper()
	for _, namespace := range []string{"a", "b", "public"} {
		s := &registry.Service{
			Hostname:   registry.Hostname(namespace + ".example.com"),
			Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
			Attributes: registry.ServiceAttributes{Namespace: namespace},
		}
		if namespace != "public" {
			s.Attributes.ExportTo = []registry.Visibility{registry.VisibilityPrivate}
		}
		if err := services.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *plane) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p.t.Cleanup(cancel)
	return ctx
}

// config is that of a client of TLS with certificates.
func (p *plane) config(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{
		RootCAs: p.authority.Pool(), ServerName: serverName, Certificates: certificates,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	}
}

// dial returns a connection of a client with a certificate for names; none: without one.
func (p *plane) dial(names ...string) *grpc.ClientConn {
	p.t.Helper()
	if len(names) == 0 {
		return p.dialTLS(p.config())
	}
	return p.dialTLS(p.config(p.authority.Pair(names...)))
}

func (p *plane) dialTLS(config *tls.Config) *grpc.ClientConn {
	p.t.Helper()
	return p.dialWith(credentials.NewTLS(config))
}

func (p *plane) dialPlain() *grpc.ClientConn {
	p.t.Helper()
	return p.dialWith(insecure.NewCredentials())
}

func (p *plane) dialWith(c credentials.TransportCredentials, options ...grpc.DialOption) *grpc.ClientConn {
	p.t.Helper()
	conn, err := grpc.NewClient("passthrough:"+serverName, append(options, grpc.WithTransportCredentials(c),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.listener.Dial(ctx) }))...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// clusters returns the clusters that a client with a node gets, or why it gets none.
func (p *plane) clusters(ctx context.Context, conn grpc.ClientConnInterface, node *core.Node) ([]string, error) {
	p.t.Helper()
	c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: node})
	defer c.Close()
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	if err := c.Subscribe(envoy.ClusterType); err != nil {
		return nil, err
	}
	r, err := c.Next(ctx)
	if err != nil {
		return nil, unwrapped(err)
	}
	return slices.Sorted(slices.Values(r.Names())), nil
}

// seen returns the clusters of the proxies of a namespace.
func seen(namespace string) []string {
	out := []string{envoy.ClusterName(80, "public.example.com")}
	if namespace == "a" || namespace == "b" {
		out = append([]string{envoy.ClusterName(80, registry.Hostname(namespace+".example.com"))}, out...)
	}
	return out
}

// node returns a node with an ID and pairs of metadata.
func node(id string, metadata ...string) *core.Node {
	n := &core.Node{Id: id, Metadata: &structpb.Struct{Fields: make(map[string]*structpb.Value)}}
	for i := 0; i < len(metadata); i += 2 {
		n.Metadata.Fields[metadata[i]] = structpb.NewStringValue(metadata[i+1])
	}
	return n
}

// in returns a node whose ID has a namespace.
func in(namespace string) *core.Node {
	return node("sidecar~10.0.0.1~web-1." + namespace + "~" + namespace + ".svc.cluster.local")
}

func check(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns the log since the last call.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

func parse(t *testing.T, pair tls.Certificate) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
