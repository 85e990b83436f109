// SPDX-License-Identifier: Apache-2.0

// Package pmap has hash maps that can be snapshotted for nothing: [Map], which is
// immutable, and [Live], which one writer changes while others read it and whose
// snapshots are Maps.
//
// Both are compressed hash-array mapped tries with 64 slots per node: Bagwell,
// "Ideal Hash Trees" (2001), in the layout of Steindorfer and Vinju, "Optimizing
// Hash-Array Mapped Tries for Fast and Lean Immutable JVM Collections" (2015),
// which keeps the entries of a node apart from its children and the shape of the
// tree independent of its history. An operation touches O(log64 n) nodes. With 32
// slots a change of a Map copies a quarter less, but one of a Live takes 1.7 times as
// long (BenchmarkSet, BenchmarkLiveSet).
//
// # Concurrency
//
// A Map may be used from any goroutine, and copied. The methods of Live that
// change it, and Snapshot, must not be called concurrently with each other; its
// reading methods may be called at any time, take no lock, and see each entry
// either before or after a change.
package pmap
