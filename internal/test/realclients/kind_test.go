// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"path/filepath"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/grpccall"
)

// kind is one of the clients.
type kind struct {
	grpccall.Kind
	// repeat starts a client that has a bootstrap and calls a target, again and again, until the test
	// ends, and returns where its outcomes come and how it is sent a mark.
	repeat func(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error)
}

func kinds() (out []kind) {
	repeat := map[string]func(*testing.T, []byte, string) (*feed, func(string) error){"grpc-go": startGo, "grpc-js": startNode, "C-core": startPython}
	for _, k := range grpccall.Kinds() {
		out = append(out, kind{k, repeat[k.Name]})
	}
	return out
}

// startNode starts grpc-js with grpc-js-xds.
func startNode(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error) {
	t.Helper()
	return startProgram(t, bootstrap, target, "node", filepath.Join("testdata", "node", "client.js"))
}

// startPython starts the C-core.
func startPython(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error) {
	t.Helper()
	return startProgram(t, bootstrap, target, grpccall.Python(), filepath.Join("testdata", "python", "client.py"))
}
