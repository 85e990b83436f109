// SPDX-License-Identifier: Apache-2.0

// Package xdsupdate is the way from a change in a registry to an xDS push:
// XDSUpdater is what registries call, EndpointIndex keeps the endpoints of all
// registries by service, PushRequest says what has to be pushed, and Pusher
// debounces requests into pushes. Nothing here depends on an xDS library; a
// server is in xdsupdate/ads.
//
// A program makes one Pusher, hands it to its registries, and registers
// ConfigHandler and ServiceHandler for what no registry pushes. A registry that
// may be replaced while the program runs gets an updater of its own from
// Pusher.Claim.
//
// # Concurrency
//
// Every method may be called from any goroutine. No updater and no function of
// the host is called with a lock held. Readers of an EndpointIndex take no lock
// and wait for nobody.
//
// # Events
//
// For one change a registry calls SvcUpdate, EDSUpdate, ConfigUpdate and
// ProxyUpdate, in this order, after its own reads show the change. A push comes
// after that: what it reads is at least as fresh as what it was asked for.
package xdsupdate
