// SPDX-License-Identifier: Apache-2.0

// Package grpccall makes calls, for tests, with the clients that gRPC programs really have: grpc-go in the test's own
// process, grpc-js as a Node program, and the C-core of Python as a Python program. All read their configuration by
// xDS, and use the certificates of their bootstraps where it says so.
//
// The programs and their dependencies are in internal/test/realclients/testdata, and tests of its
// sibling packages find them there.
package grpccall
