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

// TLSOptions for NewTLS. Either Files or Function is needed.
type TLSOptions struct {
	Files Files
	// Function returns the material that Files would have. It is called by NewTLS, Reload and
	// Run, one call at a time. An error, or a panic, keeps the last good material. What it
	// returns must not change any more.
	Function func() (*Material, error)
	// CertificateOptional lets clients connect without a certificate, for instance those that
	// have a token. One that a client has is verified nevertheless.
	CertificateOptional bool
	// Interval is the time after which Run reads the material again; 0: 10 seconds.
	// Negative: only Reload does.
	Interval time.Duration
	// MaxBytes is the size of the largest file that is read. 0: 1 MiB; negative: no limit.
	MaxBytes int
	// Logger gets what cannot be used, once for as long as it stays the same, and
	// rotations; never any part of a key. Nil discards.
	Logger *slog.Logger
}

const (
	defaultInterval = 10 * time.Second
	defaultMaxBytes = 1 << 20
)

// TLS has the certificate of a server and the authorities of its clients, and rotates
// them. Its methods may be called from any goroutine.
type TLS struct {
	options TLSOptions
	config  atomic.Pointer[tls.Config]
	running atomic.Bool
	limiter loglimit.Limiter

	// err is why the newest material is not used; nil: it is.
	err atomic.Error

	// mu is held while material is read, which may take any time.
	mu       sync.Mutex
	material *Material
}

// NewTLS reads the material, and returns an error if it cannot be used. It panics if
// there are both Files and Function, or neither.
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

// Credentials returns credentials for grpc.Creds, which follow rotations.
func (t *TLS) Credentials() credentials.TransportCredentials {
	return credentials.NewTLS(t.Config("h2"))
}

// Config returns a configuration for other servers, which follows rotations and speaks some
// application protocols (ALPN): "h2" and "http/1.1" for an http.Server, for instance.
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

// Run reads the material again every TLSOptions.Interval. It returns when stop is closed,
// and panics when it is called twice.
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
			_ = t.Reload() // it is logged
		}
	}
}

// Reload reads the material again, now. It returns why that cannot be used; then the last
// good one stays in force.
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

// Err returns why the newest material is not used; nil: it is.
func (t *TLS) Err() error { return t.err.Load() }

// read returns material that can be used.
func (t *TLS) read() (material *Material, err error) {
	if p := guard.Call(func() { material, err = t.options.Function() }); p != nil {
		// Without the value: it may have a key.
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

// log keeps what a logger panics with from the caller.
func (t *TLS) log(record func(*slog.Logger)) { _ = guard.Call(func() { record(t.options.Logger) }) }

// use puts material in force for connections that are made from now on.
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
