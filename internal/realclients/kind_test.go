// SPDX-License-Identifier: Apache-2.0

package realclients

import "testing"

// kind is one of the clients.
type kind struct {
	name string
	// missing says why the client cannot be run here; "" if it can.
	missing func() string
	// external: the client is a process of its own.
	external bool
	// start starts a client that has a bootstrap and calls a target until the test
	// ends, and returns where its outcomes come and how it is sent a mark.
	start func(t *testing.T, bootstrap []byte, target string) (*feed, func(mark string) error)
}

func kinds() []kind {
	return []kind{
		{name: "grpc-go", missing: func() string { return "" }, start: startGo},
		{name: "grpc-js", missing: missingNode, external: true, start: startNode},
		{name: "C-core", missing: missingPython, external: true, start: startPython},
	}
}
