// SPDX-License-Identifier: Apache-2.0

// Package xdsupdate turns changes in registries into xDS pushes. Registries call an XDSUpdater.
// EndpointIndex stores the endpoints of all registries by service. PushRequest describes a push.
// Pusher debounces requests into pushes. The package does not depend on an xDS library; package
// xdsupdate/ads is a server.
//
// A host creates one Pusher, passes it to its registries, and registers ConfigHandler and
// ServiceHandler for changes that no registry pushes. A nil updater is Discard in all functions. A
// registry that may be replaced at run time gets its own updater from Writers.
//
// # Concurrency
//
// Every method may be called from any goroutine. No updater and no function of the host is called
// with a lock held. Readers of an EndpointIndex take no lock and never wait.
//
// # Events
//
// For one change a registry calls SvcUpdate, EDSUpdate, ConfigUpdate and ProxyUpdate, in this
// order, after its own reads show the change. The push comes later, so it reads a state that
// includes the change.
//
// A registry publishes its state and makes these calls in a batch (BatchUpdater). A batch is one
// Update: a value that a Pusher applies as a whole, in the order of the updates, without calling
// other code. A push takes the due request together with the Root, which is the result of all
// updates applied until then: the endpoints, the services that registries have set, and the
// followed configs. A push therefore never has a new definition of a service with old endpoints,
// and no registry waits for it. A discovery that sets no services is read after the root was taken.
// The read is repeated a few times if a registry was in a batch meanwhile.
//
// # Debounce
//
// The delay of a request with the default Debounce:
//
//	request                        | waits until                           | at most
//	-------------------------------|---------------------------------------|---------
//	endpoints only                 | 10 ms have passed since the last push | 10 ms
//	                               | of endpoints                          |
//	full                           | no full request has come for 100 ms   | 500 ms
//	full, with a security object   | as full                               | 50 ms
//	endpoints after a SvcUpdate of | as full, because they belong to the   | 500 ms
//	the service                    | new definition                        |
//	any, before Run                | Run                                   | -
//	any, in Flush                  | -                                     | 0
//
// The first change of endpoints after a quiet time is pushed immediately. Neither full requests nor
// other changes of endpoints delay it, and changes within the interval are merged. A full push
// includes the pending endpoints. Each push also waits for the previous push, which takes as long
// as the function of the host. ProxyUpdate is not a push and is not delayed.
package xdsupdate
