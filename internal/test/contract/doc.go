// SPDX-License-Identifier: Apache-2.0

// Package contract has the common parts of contract test suites, for any interface. A suite is a
// list of [Check]s, each of which proves on a subject of its own that an implementation keeps one
// promise of the interface; [Run] makes each a subtest.
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
// As with a [testing.T], methods that end a check may be called on its own goroutine only: Stop and
// all waits. The other methods may be called from any goroutine.
package contract
