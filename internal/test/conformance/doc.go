// SPDX-License-Identifier: Apache-2.0

// Package conformance replays scenarios whose outcome was recorded from Istio
// against this library, and compares. It consists of tests only:
//
//	go test ./internal/test/conformance
//	go test ./internal/test/conformance -run 'TestConformance/dns/'
//	PILOTKIT_CONFORMANCE=<dir> go test ./internal/test/conformance
//
// The scenarios are in testdata/conformance of the module; the environment variable
// names another directory of the same format, which its README.md describes,
// absolute or from the module's root. Every scenario is replayed twice, once with an
// updater that takes complete endpoint lists and once with one that takes deltas.
//
// # Comparison
//
// Recorded and replayed observations are converted to a common form (observation). The functions
// row… apply the rules of DECISIONS.md to the recorded one: they state the right result where the
// recording is wrong. Then both are compared section by section. The functions incidental… remove
// the details that README.md calls incidental, and the calls of the updater are compared by their
// effect (pushes). The rows for the config store concern whole histories, so two small models
// (storeModel) replace such functions: one with the recorded rules, which must reproduce the
// recording, and one with ours.
//
// Independent of the recording, the registry is compared after every step with a computation from
// scratch, and the order of its calls is checked.
//
// # Other scenarios
//
// testdata holds scenarios that were written by hand, for rules without a recorded example.
// TestUpdatersAgree plays random ones, which are checked only for properties that hold in all
// scenarios.
package conformance
