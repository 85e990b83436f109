// SPDX-License-Identifier: Apache-2.0

// Package xdstest has what tests need on both ends of xdsupdate: an updater that
// records the calls of registries, and an xDS client that sees what a server
// sends.
//
// Nothing here waits by sleeping: with a registry that is driven by hand, or
// under testing/synctest, everything has been recorded when the driving call
// returns.
//
// # Concurrency
//
// Every method may be called from any goroutine.
package xdstest
