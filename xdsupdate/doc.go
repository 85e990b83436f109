// SPDX-License-Identifier: Apache-2.0

// Package xdsupdate is the way from a change in a registry to an xDS push:
// XDSUpdater is what registries call, EndpointIndex keeps the endpoints of all
// registries by service, PushRequest says what has to be pushed, and Pusher
// debounces requests into pushes. Nothing here depends on an xDS library; a
// server is in xdsupdate/ads.
//
// # Concurrency
//
// Every method may be called from any goroutine. No updater and no function of
// the host is called with a lock held.
package xdsupdate
