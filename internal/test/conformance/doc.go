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
// # What is compared
//
// Recorded and replayed observations are brought into one form (observation).
// The recorded one is changed by the rules of DECISIONS.md, the functions named
// row…, which say what is right where the recording is not; both are then compared
// section by section. What README.md calls incidental is left out by the functions
// named incidental…, and by comparing the calls of the updater by their effect
// (pushes). For the config store, whose rows concern whole histories, two small
// models (storeModel) take the place of such functions: one with the recorded
// rules, which must give the recording, and one with ours.
//
// Beside the recording, the registry is compared after every step with a
// computation from scratch, and the order of its calls is checked.
//
// # Other scenarios
//
// testdata holds scenarios that were written by hand, for rules of which there is
// no recorded example. TestUpdatersAgree plays random ones, of which nothing is
// known but what must hold for all.
package conformance
