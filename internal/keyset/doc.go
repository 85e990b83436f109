// SPDX-License-Identifier: Apache-2.0

// Package keyset fetches and caches the JSON Web Key Sets (RFC 7517) that verify tokens, from the
// URIs where they are published. A fetched set remains available while it is used, even if later
// fetches fail.
//
// # Concurrency
//
// Everything may be called from any goroutine. Run calls Changed and Failed without locks held, one
// call at a time.
package keyset
