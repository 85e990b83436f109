// SPDX-License-Identifier: Apache-2.0

package grpccall

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// Kind is one of the clients.
type Kind struct {
	Name string
	// External: the client is a process of its own.
	External bool
	// Missing says why the client cannot be run here; "" if it can.
	Missing func() string
	start   func(c *Caller, bootstrap []byte) func(Call) error
}

// Kinds returns all clients.
func Kinds() []Kind {
	return []Kind{
		{Name: "grpc-go", Missing: func() string { return "" }, start: (*Caller).startGo},
		{Name: "grpc-js", External: true, Missing: missingNode, start: func(c *Caller, bootstrap []byte) func(Call) error {
			return c.startProgram(bootstrap, "node", filepath.Join(Programs, "node", "ask.js"))
		}},
		{Name: "C-core", External: true, Missing: missingPython, start: func(c *Caller, bootstrap []byte) func(Call) error {
			return c.startProgram(bootstrap, Python(), filepath.Join(Programs, "python", "ask.py"))
		}},
	}
}

// requireVariable is the environment variable that makes a client that is not installed a failure.
const requireVariable = "PILOTKIT_REQUIRE_CLIENTS"

// Require skips the test if the client is not installed, with the reason, and one whose client is
// External outside the full tier. If PILOTKIT_REQUIRE_CLIENTS is set, it fails where it is not installed.
func (k Kind) Require(tb testing.TB) {
	tb.Helper()
	if k.External {
		tier.OnlyFull(tb, "gRPC clients and servers in other processes")
	}
	if why := k.Missing(); why != "" {
		if os.Getenv(requireVariable) != "" {
			tb.Fatalf("%s (%s is set)", why, requireVariable)
		}
		tb.Skip(why)
	}
}

// Start starts a client that has a bootstrap. It ends with the test.
func (k Kind) Start(tb testing.TB, bootstrap []byte) *Caller {
	tb.Helper()
	c := &Caller{tb: tb, answers: make(chan Answer, 1024)}
	c.send = k.start(c, bootstrap)
	return c
}

// Programs has the Node and Python programs. The path is relative to the siblings of
// internal/test/realclients.
const Programs = "../realclients/testdata"

// NodeModules has, after "npm ci", the packages of the programs in Node.
const NodeModules = Programs + "/node/node_modules"

func missingNode() string {
	if _, err := exec.LookPath("node"); err != nil {
		return "node is not installed"
	}
	if _, err := os.Stat(filepath.Join(NodeModules, "@grpc", "grpc-js-xds", "package.json")); err != nil {
		return "grpc-js is not installed: npm ci --prefix internal/test/realclients/testdata/node"
	}
	return ""
}

// Python returns a Python that has gRPC, or "". Debian installs python3-grpcio for its own Python,
// which need not be the first in the PATH.
func Python() string { return findPython() }

// findPython looks once.
//
//nolint:gochecknoglobals // what is installed does not change
var findPython = sync.OnceValue(func() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import grpc").Run() == nil {
			return python
		}
	}
	return ""
})

func missingPython() string {
	if Python() == "" {
		return "no python3 has grpc: apt-get install python3-grpcio"
	}
	return ""
}
