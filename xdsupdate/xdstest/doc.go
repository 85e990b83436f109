// SPDX-License-Identifier: Apache-2.0

// Package xdstest has test helpers for both ends of xdsupdate: an updater that records the calls of
// registries, and an xDS client that receives the resources of a server.
//
// No helper waits by sleeping: with a registry that is driven by hand, or under testing/synctest,
// all calls have been recorded when the driving call returns.
//
// # Concurrency
//
// Every method is safe for concurrent use.
package xdstest
