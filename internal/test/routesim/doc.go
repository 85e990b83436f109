// SPDX-License-Identifier: Apache-2.0

// Package routesim predicts, for tests, the outcome of a request: by a route configuration, as
// Envoy and gRPC clients are documented to read it (Choose), and by the VirtualServices themselves,
// as Istio's API documents them (Mesh). Tests generate the former from the latter and compare the
// outcomes.
//
// In the same way it predicts whether a call is admitted: by the filters of a chain, as Envoy is
// documented to decide (Gate), and by AuthorizationPolicies (Authorization).
//
// It is written from the documentation of both sides and shares no code with the code under test.
// TestSimulationIsEnvoy of xdsupdate/traffic compares it with real Envoys.
package routesim
