// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// adminToken is the bearer token of the user admin in the group system:masters.
const adminToken = "admin"

// startPatience is how long a server may take to be ready, or to do what it is polled for, on a busy machine.
const startPatience = 2 * time.Minute

// Server is one kube-apiserver with its data. Create it with Start or
// Shared.Server.
type Server struct {
	binary string
	dir    string
	args   []string
	front  *Front

	mu      sync.Mutex
	addr    string // of the process
	process *process
}

// process is a running server. Closing stdin ends it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// Start starts a server for one test, with further flags of kube-apiserver. It
// authorises by RBAC. The server and its data go with the test. The test is
// skipped, or fails, as Require says, if there is no server; and it is skipped if
// tests are to be short.
func Start(tb testing.TB, flags ...string) *Server {
	tb.Helper()
	tier.NotShort(tb, "an API server")
	s, err := start(requireBinary(tb), tb.TempDir(), flags)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.close)
	return s
}

func start(binary, dir string, flags []string) (*Server, error) {
	s := &Server{binary: binary, dir: dir}
	if err := s.prepare(flags); err != nil {
		return nil, err
	}
	var err error
	if s.front, err = newFront(s); err != nil {
		return nil, err
	}
	if err := s.run(); err != nil {
		s.front.close()
		return nil, err
	}
	return s, nil
}

// prepare writes the files that the server needs.
func (s *Server) prepare(flags []string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	keyFile, tokens := filepath.Join(s.dir, "sa.key"), filepath.Join(s.dir, "tokens.csv")
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := errors.Join(
		os.WriteFile(keyFile, pemKey, 0o600),
		os.WriteFile(tokens, []byte(adminToken+`,admin,1,"system:masters"`+"\n"), 0o600),
	); err != nil {
		return err
	}
	s.args = append([]string{
		filepath.Join(s.dir, "etcd"),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + filepath.Join(s.dir, "certs"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile,
		"--token-auth-file=" + tokens,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--authorization-mode=RBAC",
		// Pods need no service account, and nobody asks where the server is.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
	}, flags...)
	return nil
}

// Config returns the configuration of an administrator's client. It stays valid
// when the server is stopped and started.
func (s *Server) Config() Config { return s.front.Config() }

// ConfigFor returns the configuration of a client of another user, who may do
// what RBAC allows: at first nothing but discovery.
func (s *Server) ConfigFor(user string, groups ...string) Config {
	config := s.Config()
	config.User, config.Groups = user, append(slices.Clone(groups), "system:authenticated")
	return config
}

// Stop kills the server: connections break, and new ones are refused. The data
// stays.
func (s *Server) Stop() {
	s.mu.Lock()
	p := s.process
	s.process, s.addr = nil, ""
	s.mu.Unlock()
	if p != nil {
		p.stop()
	}
}

// Restart starts a server on the data of the one before, which it stops if it
// still runs, and returns when it is ready.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Stop()
	if err := s.run(); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) close() {
	s.Stop()
	s.front.close()
}

// address returns where the process listens; nobody does at "".
func (s *Server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// run starts the process and returns when it is ready. The port is looked for
// before, so that another process may have taken it: then it tries again.
func (s *Server) run() error {
	var errs []error
	for range 3 {
		addr, err := freeAddress()
		if err != nil {
			return err
		}
		p, err := s.launch(addr)
		if err != nil {
			return err
		}
		if err := s.awaitReady(p, addr); err != nil {
			p.stop()
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		s.process, s.addr = p, addr
		s.mu.Unlock()
		return nil
	}
	return errors.Join(errs...)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Nothing waits here.
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *Server) launch(addr string) (*process, error) {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.binary, append(slices.Clone(s.args), "--secure-port="+port)...) //nolint:noctx // It ends with its input.
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // It was killed, or the log says why it ended.
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill() // It may have ended.
	<-p.ended
	p.stdin.Close()
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "apiserver.log") }

// awaitReady asks a process until it is ready or has ended.
func (s *Server) awaitReady(p *process, addr string) error {
	config := Config{Host: "https://" + addr, Token: adminToken}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for {
		if config.ready() {
			return nil
		}
		select {
		case <-again.C:
		case <-p.ended:
			return fmt.Errorf("kube-apiserver has ended: %s", s.logTail())
		case <-patience.C:
			return fmt.Errorf("kube-apiserver is not ready after %v: %s", startPatience, s.logTail())
		}
	}
}

func (c Config) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // A server is shared by tests.
	defer cancel()
	status, _, err := c.Call(ctx, http.MethodGet, "/readyz", nil)
	return err == nil && status == http.StatusOK
}

func (s *Server) logTail() string {
	data, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(tail(string(data)))
}
