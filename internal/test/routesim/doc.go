// SPDX-License-Identifier: Apache-2.0

// Package routesim says, for tests, what becomes of a request: by a route
// configuration, as Envoy and gRPC clients are documented to read it (Choose), and
// by the VirtualServices themselves, as Istio's API documents them (Mesh). Tests
// build the one from the other and compare.
//
// In the same way it says whether a call is let in: by the filters of a chain, as
// Envoy is documented to decide (Gate), and by AuthorizationPolicies (Authorization).
//
// It is written from the documentation of both sides and shares no code with what
// it is to check. TestSimulationIsEnvoy of xdsupdate/traffic compares it with what
// real Envoys do.
package routesim
