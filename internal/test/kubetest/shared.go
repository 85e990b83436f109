// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"os"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// Shared is the server that the tests of one package share. The zero value is
// ready for use; it starts nothing until Server is called.
type Shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Main runs the tests, stops the server, and fails if a goroutine is left. Call it
// in TestMain.
func (s *Shared) Main(m *testing.M) { testmain.Verify(&sharing{m: m, shared: s}) }

type sharing struct {
	m      *testing.M
	shared *Shared
}

// Run implements goleak.TestingM.
func (s *sharing) Run() int {
	defer s.shared.stop()
	return s.m.Run()
}

// Server returns the server, started by the first call. Tests keep their objects
// apart by namespace, and leave no cluster-scoped ones behind. The test is
// skipped, or fails, as Require says, if there is no server; and it is skipped if
// tests are to be short.
func (s *Shared) Server(tb testing.TB) *Server {
	tb.Helper()
	tier.NotShort(tb, "an API server")
	path := requireBinary(tb)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = startShared(path)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.server
}

func startShared(binary string) (*Server, error) {
	dir, err := os.MkdirTemp("", "kubetest")
	if err != nil {
		return nil, err
	}
	s, err := start(binary, dir, nil)
	if err != nil {
		os.RemoveAll(dir)
	}
	return s, err
}

func (s *Shared) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.close()
		os.RemoveAll(s.server.dir)
	}
}
