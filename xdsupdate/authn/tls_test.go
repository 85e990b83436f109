// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// interval is how long Run needs to see a rotation.
const interval = 10*time.Second + time.Millisecond

// handshake opens a connection and returns the client's TLS state after the server has accepted it.
func (p *plane) handshake(config *tls.Config) (tls.ConnectionState, error) {
	p.t.Helper()
	raw, err := p.listener.Dial(p.context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(p.context()); err != nil {
		return tls.ConnectionState{}, err
	}
	// With TLS 1.3 the client learns only from the server's first bytes whether it was accepted:
	// they are its HTTP/2 settings, or an alert.
	_, err = io.ReadFull(conn, make([]byte, 9))
	return conn.ConnectionState(), err
}

func (p *plane) serial(config *tls.Config) string {
	p.t.Helper()
	state, err := p.handshake(config)
	if err != nil {
		p.t.Fatal(err)
	}
	return state.PeerCertificates[0].SerialNumber.String()
}

// TestRotation: the certificate of the server and the authority of its clients are replaced. New
// connections use the new ones, the existing one continues.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPlane(t, planeOptions{})
		old, next := p.authority, authority.New(t)
		ofOld, ofNext := p.config(old.Pair(spiffe("a"))), p.config(next.Pair(spiffe("a")))
		first := p.serial(ofOld)
		if _, err := p.handshake(ofNext); err == nil {
			t.Error("a client of an authority that is not known is let in")
		}
		c := xdstest.NewClient(p.dialTLS(ofOld), xdstest.ClientOptions{Node: in("a")})
		defer c.Close()
		if err := errors.Join(c.Connect(p.context()), c.Subscribe(clusterType)); err != nil {
			t.Fatal(err)
		}
		p.awaitClusters(c)

		certificate, key := old.Issue(serverName)
		p.files.write(p.files.Certificate, certificate)
		p.files.write(p.files.Key, key)
		p.files.write(p.files.Authorities, slicesOf(old.PEM(), next.PEM()))
		time.Sleep(interval)
		if second := p.serial(ofNext); second == first || second != p.serial(ofOld) {
			t.Errorf("the new connection has the certificate %s, the old one was %s", second, first)
		}
		p.files.write(p.files.Authorities, next.PEM())
		time.Sleep(interval)
		if _, err := p.handshake(ofOld); err == nil {
			t.Error("a client of the authority that is gone is let in")
		}
		p.serial(ofNext)
		if said := p.log.take(); strings.Count(said, "certificate is used") != 2 {
			t.Errorf("the log says %q", said)
		}

		// The stream of the old certificate lives.
		if err := c.Subscribe(endpointType, "outbound|80||a.example.com"); err != nil {
			t.Fatal(err)
		}
		if err := c.Await(p.context(), func(s xdstest.State) bool { return s.Has(endpointType, "outbound|80||a.example.com") }); err != nil {
			t.Error(err)
		}
	})
}

func (p *plane) awaitClusters(c *xdstest.Client) {
	p.t.Helper()
	if err := c.Await(p.context(), func(s xdstest.State) bool { return s.Has(clusterType, seen("a")...) }); err != nil {
		p.t.Fatal(err)
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestNothingIsResumed: a session of a client does not outlive its authority.
func TestNothingIsResumed(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		synctest.Test(t, func(t *testing.T) {
			p := startPlane(t, planeOptions{})
			config := p.config(p.authority.Pair(spiffe("a")))
			config.ClientSessionCache, config.MaxVersion = tls.NewLRUClientSessionCache(8), version
			for range 2 {
				if state, err := p.handshake(config); err != nil || state.DidResume {
					t.Errorf("%s: resumed %v, %v", tls.VersionName(version), state.DidResume, err)
				}
			}
			p.files.write(p.files.Authorities, authority.New(t).PEM())
			time.Sleep(interval)
			if _, err := p.handshake(config); err == nil {
				t.Errorf("%s: a client of the authority that is gone is let in", tls.VersionName(version))
			}
		})
	}
}

// TestHalfRotation: unusable material keeps the last good material in use, as long as it persists,
// and is logged once, without any part of a key.
func TestHalfRotation(t *testing.T) {
	const secret = "very-secret-text"
	for name, c := range map[string]struct {
		write func(f *files, a *authority.Authority)
		text  string
	}{
		"a certificate without its key": {func(f *files, a *authority.Authority) {
			certificate, _ := a.Issue(serverName)
			f.write(f.Certificate, certificate)
		}, "private key"},
		"a key without its certificate": {func(f *files, a *authority.Authority) {
			_, key := a.Issue(serverName)
			f.write(f.Key, key)
		}, "private key"},
		"an empty certificate": {func(f *files, _ *authority.Authority) { f.write(f.Certificate, nil) }, "tls.crt"},
		"a garbage key":        {func(f *files, _ *authority.Authority) { f.write(f.Key, []byte(secret)) }, "tls.key"},
		"a key that is cut": {func(f *files, a *authority.Authority) {
			_, key := a.Issue(serverName)
			f.write(f.Key, key[:len(key)/2])
		}, "tls.key"},
		"garbage authorities": {func(f *files, _ *authority.Authority) { f.write(f.Authorities, []byte(secret)) }, "ca.crt"},
		"authorities that are cut": {func(f *files, a *authority.Authority) {
			f.write(f.Authorities, slicesOf(a.PEM(), a.PEM()[:100]))
		}, "ca.crt has 1 certificates in PEM, and 2 blocks"},
		"a broken authority before a good one": {func(f *files, a *authority.Authority) {
			f.write(f.Authorities, slicesOf([]byte("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), a.PEM()))
		}, "ca.crt"},
		"an authority that is none": {func(f *files, _ *authority.Authority) {
			f.write(f.Authorities, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
		}, "ca.crt: certificate 1"},
		"a key among authorities": {func(f *files, a *authority.Authority) {
			_, key := a.Issue(serverName)
			f.write(f.Authorities, slicesOf(a.PEM(), key))
		}, "something other"},
		"a file that is gone": {func(f *files, _ *authority.Authority) {
			if err := os.Remove(f.Key); err != nil {
				f.t.Fatal(err)
			}
		}, "tls.key"},
		"a named pipe": {func(f *files, _ *authority.Authority) {
			if err := errors.Join(os.Remove(f.Key), syscall.Mkfifo(f.Key, 0o600)); err != nil {
				f.t.Fatal(err)
			}
		}, "named pipe"},
		"a huge file": {func(f *files, _ *authority.Authority) { f.write(f.Key, make([]byte, 2<<20)) }, "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startPlane(t, planeOptions{})
				config := p.config(p.authority.Pair(spiffe("a")))
				before := p.serial(config)
				keys, err := os.ReadFile(p.files.Key)
				if err != nil {
					t.Fatal(err)
				}
				c.write(p.files, p.authority)
				time.Sleep(20 * interval)
				check(t, "serial", p.serial(config), before)
				if err := p.tls.Err(); err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("the error is %v, want %q in it", err, c.text)
				}
				said := p.log.take()
				if strings.Count(said, "certificate is not used") != 1 || strings.Contains(said, secret) || strings.Contains(said, "BEGIN") ||
					strings.Contains(said, strings.Split(string(keys), "\n")[1]) {
					t.Errorf("the log says %q", said)
				}
				p.repair(config, before)
			})
		})
	}
}

// repair ends a rotation that stood still.
func (p *plane) repair(config *tls.Config, before string) {
	p.t.Helper()
	certificate, key := p.authority.Issue(serverName)
	_ = os.Remove(p.files.Key)
	p.files.write(p.files.Certificate, certificate)
	p.files.write(p.files.Key, key)
	p.files.write(p.files.Authorities, p.authority.PEM())
	time.Sleep(interval)
	if p.serial(config) == before {
		p.t.Error("the certificate is the old one")
	}
	if err := p.tls.Err(); err != nil {
		p.t.Error(err)
	}
	check(p.t, "the log", strings.Count(p.log.take(), "certificate is used"), 1)
}

// TestVolume: files that are links into a directory which a link names, as in volumes of
// Kubernetes, rotate in one step.
func TestVolume(t *testing.T) {
	issuer := authority.New(t)
	dir := t.TempDir()
	put := func(version string) {
		t.Helper()
		folder := filepath.Join(dir, version)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		certificate, key := issuer.Issue(serverName)
		for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": issuer.PEM()} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "..data")
		if err := errors.Join(os.Symlink(version, link+".new"), os.Rename(link+".new", link)); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	in := func(name string) string { return filepath.Join(dir, "..data", name) }
	rotating, err := authn.NewTLS(authn.TLSOptions{Files: authn.Files{Certificate: in("tls.crt"), Key: in("tls.key"), Authorities: in("ca.crt")}})
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		config, err := rotating.Config().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, config.Certificates[0]).SerialNumber.String()
	}
	before := serial()
	put("2")
	if err := rotating.Reload(); err != nil || serial() == before {
		t.Errorf("after the rotation: %v", err)
	}
}

// TestFunction: material of the host's function rotates like files, and an error or a panic keeps
// the last material.
func TestFunction(t *testing.T) {
	issuer := authority.New(t)
	material := &authn.Material{Certificate: issuer.Pair(serverName), Authorities: issuer.Pool()}
	var err error
	var log lockedBuffer
	rotating, failed := authn.NewTLS(authn.TLSOptions{Logger: textLogger(&log), Function: func() (*authn.Material, error) {
		if material == nil && err == nil {
			panic("very-secret-text")
		}
		return material, err
	}})
	if failed != nil {
		t.Fatal(failed)
	}
	used := func() tls.Certificate {
		config, err := rotating.Config().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return config.Certificates[0]
	}
	first := material.Certificate
	material = &authn.Material{Certificate: issuer.Pair(serverName), Authorities: issuer.Pool()}
	if err := rotating.Reload(); err != nil || bytes.Equal(used().Certificate[0], first.Certificate[0]) {
		t.Errorf("a new certificate: %v", err)
	}
	second := material.Certificate
	mixed := second
	mixed.PrivateKey = first.PrivateKey
	keyless := second
	keyless.PrivateKey = nil
	garbage := second
	garbage.Certificate = [][]byte{{1}}
	for name, bad := range map[string]*authn.Material{
		"do not belong together": {Certificate: mixed, Authorities: issuer.Pool()},
		"has no key":             {Certificate: keyless, Authorities: issuer.Pool()},
		"the certificate:":       {Certificate: garbage, Authorities: issuer.Pool()},
		"no certificate":         {Authorities: issuer.Pool()},
		"no authorities":         {Certificate: second},
		"panicked":               nil,
	} {
		material = bad
		if err := rotating.Reload(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		check(t, name, used().Certificate, second.Certificate)
	}
	err = io.EOF
	if failed := rotating.Reload(); !errors.Is(failed, io.EOF) || !errors.Is(rotating.Err(), io.EOF) {
		t.Errorf("Reload = %v, Err = %v", failed, rotating.Err())
	}
	if said := log.take(); strings.Contains(said, "secret") || !strings.Contains(said, "TestFunction") {
		t.Errorf("the log says %q", said)
	}
}

// TestNothingToBeginWith: without a certificate there is no TLS.
func TestNothingToBeginWith(t *testing.T) {
	if got, err := authn.NewTLS(authn.TLSOptions{Files: authn.Files{Certificate: "none.crt", Key: "none.key"}}); err == nil || got != nil {
		t.Errorf("NewTLS = %v, %v", got, err)
	}
	issuer := authority.New(t)
	f := newFiles(t, issuer, issuer)
	f.Authorities = ""
	if _, err := authn.NewTLS(authn.TLSOptions{Files: f.Files}); err == nil || !strings.Contains(err.Error(), "authorities") {
		t.Errorf("without authorities: %v", err)
	}
	if _, err := authn.NewTLS(authn.TLSOptions{Files: f.Files, CertificateOptional: true}); err != nil {
		t.Error(err)
	}
}

// TestRunOnce: Run ends with stop, even with a negative interval, and a second call panics.
func TestRunOnce(t *testing.T) {
	issuer := authority.New(t)
	rotating, err := authn.NewTLS(authn.TLSOptions{Files: newFiles(t, issuer, issuer).Files, Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	rotating.Run(stop)
	defer func() {
		if recover() == nil {
			t.Error("the second Run does not panic")
		}
	}()
	rotating.Run(stop)
}

// TestConfigOfOthers: the configuration is good for other servers, too.
func TestConfigOfOthers(t *testing.T) {
	issuer := authority.New(t)
	rotating, err := authn.NewTLS(authn.TLSOptions{Files: newFiles(t, issuer, issuer).Files})
	if err != nil {
		t.Fatal(err)
	}
	clients := authn.New(authn.Options{TrustDomains: []string{"example.org"}})
	client, server := net.Pipe()
	defer client.Close()
	done := make(chan error, 1)
	go func() {
		defer server.Close()
		conn := tls.Server(server, rotating.Config("h2", "http/1.1"))
		err := conn.HandshakeContext(t.Context())
		if err == nil {
			ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: credentials.TLSInfo{State: conn.ConnectionState()}})
			_, err = clients.Identity(ctx)
		}
		done <- err
	}()
	conn := tls.Client(client, &tls.Config{
		RootCAs: issuer.Pool(), ServerName: serverName, Certificates: []tls.Certificate{issuer.Pair(spiffe("a"))}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, "protocol", conn.ConnectionState().NegotiatedProtocol, "http/1.1")
	if err := <-done; err != nil {
		t.Error(err)
	}
}
