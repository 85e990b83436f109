// SPDX-License-Identifier: Apache-2.0

// Package conformance replays scenarios whose outcome was recorded from Istio
// against this library, and compares. It consists of tests only:
//
//	go test ./internal/conformance
//	go test ./internal/conformance -run 'TestConformance/dns/'
//	PILOTKIT_CONFORMANCE=<dir> go test ./internal/conformance
//
// The scenarios are in testdata/conformance of the module; the environment
// variable names another directory of the same format, which its README.md
// describes. Every scenario is replayed twice, once with an updater that takes
// complete endpoint lists and once with one that takes deltas.
//
// # What is compared
//
// Recorded and replayed observations are brought into one normal form
// (observation), the recorded one is changed by the rules of DECISIONS.md
// (the functions named row…), and both are compared section by section. What
// README.md calls incidental is removed by the functions named incidental….
//
// # Scenarios that do not pass
//
// not-passing.txt lists them, one "topic/name" a line. The list can only
// shrink: a listed scenario that passes, or does not exist, fails the test.
package conformance
