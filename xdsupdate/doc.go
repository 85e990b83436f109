// SPDX-License-Identifier: Apache-2.0

// Package xdsupdate is the way from a change in a registry to an xDS push:
// XDSUpdater is what registries call, EndpointIndex keeps the endpoints of all
// registries by service, PushRequest says what has to be pushed, and Pusher
// debounces requests into pushes. Nothing here depends on an xDS library; a
// server is in xdsupdate/ads.
//
// A program makes one Pusher, hands it to its registries, and registers
// ConfigHandler and ServiceHandler for what no registry pushes. A nil updater is Discard,
// wherever one is taken. A registry that
// may be replaced while the program runs gets an updater of its own from
// Writers.
//
// # Concurrency
//
// Every method may be called from any goroutine. No updater and no function of
// the host is called with a lock held. Readers of an EndpointIndex take no lock
// and never wait.
//
// # Events
//
// For one change a registry calls SvcUpdate, EDSUpdate, ConfigUpdate and
// ProxyUpdate, in this order, after its own reads show the change. A push comes
// after that: what it reads is at least as fresh as what it was asked for.
//
// A registry publishes its state and makes these calls, but for ProxyUpdate, in a
// batch (BatchUpdater), which is one Update: a value that a Pusher applies as a whole,
// in the order of the updates, without calling anybody. A push takes the request that
// is due together with the Root, which is all that was applied until then: the endpoints, and the
// services that registries have set. So it never has the new definition of a service
// with the old endpoints, and nobody waits for it. A discovery that sets no services is
// read after the root was taken, and again, a few times, if a registry was in a
// batch meanwhile.
//
// # Debounce
//
// What a request waits for before it is pushed, by the defaults of PusherOptions:
//
//	request                        | waits until                           | at most
//	-------------------------------|---------------------------------------|---------
//	endpoints only                 | 10 ms have passed since the last push | 10 ms
//	                               | of endpoints                          |
//	full                           | no full request has come for 100 ms   | 500 ms
//	endpoints after a SvcUpdate of | as full: they go with the definition  | 500 ms
//	the service                    | that they belong to                   |
//	any, before Run                | nothing but Run                       | -
//	any, in Flush                  | nothing                               | 0
//
// So the first change of endpoints after a quiet time is pushed at once, and
// neither full requests nor other changes of endpoints hold one up: changes that
// come within the interval are merged. A full push takes with it the endpoints that
// wait. Besides, each push waits for the push before it, which may take as long as
// the program's function does. ProxyUpdate is no
// push and waits for nothing.
package xdsupdate
