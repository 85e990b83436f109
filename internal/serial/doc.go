// SPDX-License-Identifier: Apache-2.0

// Package serial puts calls that come from many goroutines, and from within one
// another, into one order without a goroutine of its own.
//
// # Concurrency
//
// Every method may be called from any goroutine.
package serial
