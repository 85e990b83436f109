// SPDX-License-Identifier: Apache-2.0

// Package keyset keeps the JSON Web Key Sets (RFC 7517) that verify tokens, as they are published at URIs. A set that
// was fetched stays, whatever becomes of where it came from, as long as somebody uses it.
//
// # Concurrency
//
// Everything may be called from any goroutine. Changed and Failed are called by Run's, with no lock held, one call
// at a time.
package keyset
