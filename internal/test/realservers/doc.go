// SPDX-License-Identifier: Apache-2.0

// Package realservers has real gRPC servers that speak xDS, grpc-go, the C core (Python) and grpc-js, serve by
// what traffic.Policies say: who may call what, over mutual TLS and in plain text, while policies change. It
// consists of tests only. The C core and grpc-js are tried where they are installed; grpc-js is that of
// internal/test/realclients.
package realservers
