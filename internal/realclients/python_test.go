// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// findPython returns a Python that has gRPC, or "". Debian installs python3-grpcio
// for its own Python, which need not be the first in the PATH.
var findPython = sync.OnceValue(func() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(context.Background(), python, "-c", "import grpc").Run() == nil {
			return python
		}
	}
	return ""
})

func missingPython() string {
	if findPython() == "" {
		return "no python3 has grpc: apt-get install python3-grpcio"
	}
	return ""
}

// startPython starts the C-core.
func startPython(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error) {
	t.Helper()
	return startProgram(t, bootstrap, target, findPython(), filepath.Join("testdata", "python", "client.py"))
}
