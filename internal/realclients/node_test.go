// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeDir has the Node program, and after "npm ci" what it needs.
const nodeDir = "testdata/node"

func missingNode() string {
	if _, err := exec.LookPath("node"); err != nil {
		return "node is not installed"
	}
	if _, err := os.Stat(filepath.Join(nodeDir, "node_modules", "@grpc", "grpc-js-xds", "package.json")); err != nil {
		return "grpc-js is not installed: npm ci --prefix internal/realclients/" + nodeDir
	}
	return ""
}

// startNode starts grpc-js with grpc-js-xds.
func startNode(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error) {
	t.Helper()
	return startProgram(t, bootstrap, target, "node", filepath.Join(nodeDir, "client.js"))
}
