// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const testTimeout = time.Minute

// issue returns a self-signed certificate, which is its own authority.
func issue(tb testing.TB, name string) *secrets.Secret {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &secrets.Secret{
		Certificate: certificate, Authorities: certificate,
		Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// directory is a directory with the files of a secret.
type directory string

func (d directory) files() secrets.Files {
	return secrets.Files{
		Certificate: filepath.Join(string(d), "tls.crt"), Key: filepath.Join(string(d), "tls.key"), Authorities: filepath.Join(string(d), "ca.crt"),
	}
}

func (d directory) write(tb testing.TB, s *secrets.Secret) {
	tb.Helper()
	f := d.files()
	for file, data := range map[string][]byte{f.Certificate: s.Certificate, f.Key: s.Key, f.Authorities: s.Authorities} {
		writeFile(tb, file, data)
	}
}

func writeFile(tb testing.TB, file string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// plane is a server with a provider of secrets.
type plane struct {
	t        testing.TB
	provider *secrets.Provider
	server   *ads.Server
	store    *storememory.Controller
	conn     *grpc.ClientConn
	log      *lockedBuffer
}

func serve(tb testing.TB, opts secrets.Options) *plane {
	tb.Helper()
	p := &plane{t: tb, log: &lockedBuffer{}}
	opts.Logger = slog.New(slog.NewTextHandler(p.log, nil))
	p.store = storememory.NewController(storememory.Make(istio.Schemas()))
	p.provider = secrets.New(p.store, opts)
	options := ads.Options{Logger: opts.Logger, Providers: []ads.Provider{p.provider}}
	options.Debounce.After = -1
	p.server = ads.New(memory.New(), options)
	server := grpc.NewServer()
	p.server.Register(server)
	p.conn, _ = testserver.ServeMemory(tb, server, p.server.Run)
	return p
}

func (p *plane) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	p.t.Cleanup(cancel)
	return ctx
}

// client returns a delta client of a namespace.
func (p *plane) client(namespace string) *xdstest.Client {
	p.t.Helper()
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{
		Delta: true, Node: &core.Node{Id: "router~10.0.0.1~edge." + namespace + "~" + namespace + ".svc"},
	})
	p.t.Cleanup(c.Close)
	if err := c.Connect(p.context()); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// subscribe asks for secrets and returns when the server has answered.
func (p *plane) subscribe(c *xdstest.Client, names ...string) {
	p.t.Helper()
	if err := c.Subscribe(secrets.Type, names...); err != nil {
		p.t.Fatal(err)
	}
	missing := make(map[string]struct{}, len(names))
	for _, n := range names {
		missing[n] = struct{}{}
	}
	for len(missing) > 0 {
		r, err := c.Next(p.context())
		if err != nil {
			p.t.Fatalf("%v are not answered: %v", missing, err)
		}
		for _, n := range append(r.Names(), r.Removed...) {
			delete(missing, n)
		}
	}
	p.applied()
}

// applied waits until all clients have their current resources.
func (p *plane) applied() {
	p.t.Helper()
	if err := p.server.WaitApplied(p.context(), nil); err != nil && !errors.Is(err, ads.ErrNotUpdated) {
		p.t.Fatal(err)
	}
}

// held returns the secrets that a client has.
func held(tb testing.TB, c *xdstest.Client) map[string]*tlsv3.Secret {
	tb.Helper()
	out := make(map[string]*tlsv3.Secret)
	for name, r := range c.State().Resources(secrets.Type) {
		m, err := r.Message()
		if err != nil {
			tb.Fatal(err)
		}
		out[name] = m.(*tlsv3.Secret)
		if err := out[name].ValidateAll(); err != nil || out[name].GetName() != name {
			tb.Errorf("%s is %s: %v", name, out[name].GetName(), err)
		}
	}
	return out
}

func isPair(m *tlsv3.Secret, s *secrets.Secret) bool {
	c := m.GetTlsCertificate()
	return bytes.Equal(c.GetCertificateChain().GetInlineBytes(), s.Certificate) && bytes.Equal(c.GetPrivateKey().GetInlineBytes(), s.Key)
}

func isAuthorities(m *tlsv3.Secret, s *secrets.Secret) bool {
	return bytes.Equal(m.GetValidationContext().GetTrustedCa().GetInlineBytes(), s.Authorities) &&
		!bytes.Contains(encode(m), s.Key)
}

func encode(m proto.Message) []byte {
	out, _ := proto.Marshal(m)
	return out
}

// lockedBuffer is a log that tests read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// grown is closed by the next Write. It is nil unless a reader waits.
	grown chan struct{}
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grown != nil {
		close(b.grown)
		b.grown = nil
	}
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// next returns the content of the log, and a channel that is closed when the log grows.
func (b *lockedBuffer) next() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grown == nil {
		b.grown = make(chan struct{})
	}
	return b.b.String(), b.grown
}

// logged waits until the log has a text: servers log what failed after they have
// answered with the rest.
func (p *plane) logged(text string) {
	p.t.Helper()
	for ctx := p.context(); ; {
		log, grown := p.log.next()
		if strings.Contains(log, text) {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			p.t.Fatalf("no %q in the log: %s", text, log)
		}
	}
}
