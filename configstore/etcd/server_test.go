// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// patience is the maximum time that a test waits for an expected event.
const patience = 60 * time.Second

// server is an etcd in this process, on loopback.
type server struct {
	dir  string
	addr string
	etcd *embed.Etcd
}

// startServer starts an etcd with the data of a folder, at an address or, for "", at a free one.
func startServer(dir, addr string) (*server, error) { return startServerWith(dir, addr, false) }

// startServerWith is startServer with or without waiting for the disk.
func startServerWith(dir, addr string, fsync bool) (*server, error) {
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	clients := free
	if addr != "" {
		clients.Host = addr
	}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{free}, []url.URL{free}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.UnsafeNoFsync = !fsync
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		e.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-time.After(patience):
		e.Close()
		return nil, fmt.Errorf("etcd is not ready after %v", patience)
	}
	return &server{dir: dir, addr: e.Clients[0].Addr().String(), etcd: e}, nil
}

func (s *server) stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// sharedServer is one etcd for all tests that do not disturb it, each with its own prefix.
type sharedServer struct {
	mu     sync.Mutex
	dir    string
	server *server
	tests  int
}

var shared sharedServer

func (s *sharedServer) get(tb testing.TB) (srv *server, prefix string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		dir, err := os.MkdirTemp("", "pilotkit-etcd-") //nolint:usetesting // It lives longer than the test.
		if err != nil {
			tb.Fatal(err)
		}
		s.dir = dir
		if s.server, err = startServer(dir, ""); err != nil {
			tb.Fatal(err)
		}
	}
	s.tests++
	return s.server, fmt.Sprintf("/test-%d", s.tests)
}

func (s *sharedServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.stop()
		_ = os.RemoveAll(s.dir)
	}
}

// newClient returns a client of an address, which the test closes.
func newClient(tb testing.TB, addr string) *clientv3.Client {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// newServer returns an etcd of the test's own.
func newServer(tb testing.TB) *server {
	tb.Helper()
	s, err := startServer(tb.TempDir(), "")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.stop)
	return s
}

// restart starts a server that was stopped, at its address. Its port may be in use by a client
// connection for a while, because the system assigns client ports from the same range.
func (s *server) restart(tb testing.TB) {
	tb.Helper()
	eventually(tb, "the port is free", func() bool {
		again, err := startServer(s.dir, s.addr)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return false
		case err != nil:
			tb.Fatal(err)
		}
		s.etcd = again.etcd
		return true
	})
}

// within returns a context with the time limit of an expected event.
func within(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}
