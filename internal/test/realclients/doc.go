// SPDX-License-Identifier: Apache-2.0

// Package realclients holds tests of a whole control plane with the xDS clients
// that gRPC programs really have: grpc-go in the test's own process, grpc-js as a
// Node program, and the C-core of Python as a Python program.
//
// Each scenario runs once for each client. A control plane on the loopback
// interface serves ServiceEntries from memory, backends on the loopback interface
// answer with their names, and the client calls one target without pause. The
// scenario changes configs and asserts which backends answer, and that no call
// fails that the protocol allows to succeed.
//
// The clients in testdata are skipped, with the reason, where they are not
// installed:
//
//	npm ci --prefix internal/test/realclients/testdata/node
//	apt-get install python3-grpcio
//
// If the environment variable PILOTKIT_REQUIRE_CLIENTS is set, a client that is
// not installed is a failure.
package realclients
