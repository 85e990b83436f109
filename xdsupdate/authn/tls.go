// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/grpc/credentials"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/loglimit"
)

// TLSOptions are the options of NewTLS. Exactly one of Files and Function must be set.
type TLSOptions struct {
	Files Files
	// Function returns the material instead of Files. It is called by NewTLS, Reload and Run, one
	// call at a time. If it returns an error or panics, the last good material stays in use. The
	// material must not be modified after it was returned.
	Function func() (*Material, error)
	// CertificateOptional lets clients connect without a certificate, for instance clients with a
	// token. A client's certificate is verified nevertheless.
	CertificateOptional bool
	// Interval is the time after which Run reads the material again. 0 means 10 seconds. If it is
	// negative, only Reload reads the material.
	Interval time.Duration
	// MaxBytes is the maximum size of a file. 0 means 1 MiB, a negative value no limit.
	MaxBytes int
	// Logger receives errors of the material, each once as long as it stays the same, and
	// rotations. It never receives any part of a key. Nil discards.
	Logger *slog.Logger
}

const (
	defaultInterval = 10 * time.Second
	defaultMaxBytes = 1 << 20
)

// TLS has the certificate of a server and the authorities of its clients, and rotates them. Its
// methods are safe for concurrent use.
type TLS struct {
	options TLSOptions
	config  atomic.Pointer[tls.Config]
	running atomic.Bool
	limiter loglimit.Limiter

	// err is the reason why the newest material is not used, nil if it is used.
	err atomic.Error

	// mu is held while material is read, which may take any time.
	mu       sync.Mutex
	material *Material
}

// NewTLS reads the material, and returns an error if it cannot be used. It panics if both Files and
// Function are set, or neither.
func NewTLS(o TLSOptions) (*TLS, error) {
	if (o.Function == nil) == (o.Files == Files{}) {
		panic("authn.NewTLS: give it either Files or Function")
	}
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &TLS{options: o}
	if o.Function == nil {
		t.options.Function = func() (*Material, error) { return o.Files.read(o.MaxBytes) }
	}
	material, err := t.read()
	if err != nil {
		return nil, err
	}
	t.use(material)
	return t, nil
}

// Credentials returns credentials for grpc.Creds. They follow rotations.
func (t *TLS) Credentials() credentials.TransportCredentials {
	return credentials.NewTLS(t.Config("h2"))
}

// Config returns a configuration for other servers. It follows rotations. Protocols are the
// application protocols (ALPN), for instance "h2" and "http/1.1" for an http.Server.
func (t *TLS) Config(protocols ...string) *tls.Config {
	protocols = slices.Clone(protocols)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := t.config.Load().Clone()
			config.NextProtos = protocols
			return config, nil
		},
	}
}

// Run reads the material again every TLSOptions.Interval. It returns when stop is closed. A second
// call panics.
func (t *TLS) Run(stop <-chan struct{}) {
	if t.running.Swap(true) {
		panic("authn.TLS.Run: it was called before")
	}
	if t.options.Interval < 0 {
		<-stop
		return
	}
	tick := time.NewTicker(t.options.Interval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			_ = t.Reload() // Reload logs the error
		}
	}
}

// Reload reads the material immediately. It returns an error if the material cannot be used; then
// the last good one stays in use.
func (t *TLS) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	material, err := t.read()
	old := t.err.Swap(err)
	if err != nil {
		if old == nil || old.Error() != err.Error() {
			t.log(func(l *slog.Logger) { l.Error("certificate is not used, the last one stays", slog.Any("error", err)) })
		}
		return err
	}
	if old != nil || !material.equal(t.material) {
		leaf := material.leaf()
		t.log(func(l *slog.Logger) {
			l.Info("certificate is used", slog.String("serial", leaf.SerialNumber.String()), slog.Time("not_after", leaf.NotAfter))
		})
	}
	t.use(material)
	return nil
}

// Err returns the reason why the newest material is not used, nil if it is used.
func (t *TLS) Err() error { return t.err.Load() }

// read reads the material and checks it.
func (t *TLS) read() (material *Material, err error) {
	if p := guard.Call(func() { material, err = t.options.Function() }); p != nil {
		// The value of the panic is not logged, because it may contain a key.
		if t.limiter.Allow("panic", "function") {
			t.log(func(l *slog.Logger) { l.Error("the function for certificates panicked", slog.String("stack", p.Stack)) })
		}
		return nil, errors.New("the function for certificates panicked")
	}
	if err != nil {
		return nil, err
	}
	return material, material.check(t.options.CertificateOptional)
}

// log calls the logger. It recovers panics of the logger's handler.
func (t *TLS) log(record func(*slog.Logger)) { _ = guard.Call(func() { record(t.options.Logger) }) }

// use makes the material the one of all new connections.
func (t *TLS) use(m *Material) {
	t.material = m
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{m.Certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: m.Authorities, SessionTicketsDisabled: true,
	}
	switch {
	case m.Authorities == nil:
		config.ClientAuth = tls.NoClientCert
	case t.options.CertificateOptional:
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	t.config.Store(config)
}
