// SPDX-License-Identifier: Apache-2.0

// Package cow holds sequences that are copied on write: a change yields a new
// sequence, which shares with the old one everything that did not change.
//
// # Concurrency
//
// A Sorted is immutable: any number of goroutines may read it, and hand it on,
// without a lock. An Editor belongs to one goroutine.
package cow
