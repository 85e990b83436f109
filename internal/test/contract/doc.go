// SPDX-License-Identifier: Apache-2.0

// Package contract has what suites of contract tests share, whatever interface
// they are for. A suite is a list of [Check]s, each of which proves on a subject
// of its own that an implementation keeps one promise of the interface; [Run]
// makes each a subtest.
//
// A check works with a [T], which reports a broken promise together with where
// it is made, and bounds every wait. A [Gate] and a [Recording] are for its
// handlers.
//
// [ExpectTeeth] tests a suite: each check has to find subjects that are broken
// on purpose.
//
// # Concurrency
//
// As with a [testing.T], what ends a check may be called on its own goroutine
// only: Stop and what waits. All else may be called from any goroutine.
package contract
