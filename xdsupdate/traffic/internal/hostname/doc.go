// SPDX-License-Identifier: Apache-2.0

// Package hostname compares, resolves and looks up the host names of services and objects, which
// may be wildcards.
//
// # Concurrency
//
// The functions are pure, and a Set is immutable.
package hostname
