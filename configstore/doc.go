// SPDX-License-Identifier: Apache-2.0

// Package configstore says what a config is and how a store of configs
// behaves. It holds declarations only, for any protobuf message: the Istio
// kinds are in configstore/istio, an implementation in configstore/memory, and
// a suite that proves an implementation in configstore/storetest.
//
// # Immutability
//
// A Config that was handed to a store or came from one must not be modified by
// anybody: not its Spec, not its Status, not its maps. Get and List hand out
// the stored objects themselves. To change an object, Clone it, change the
// clone and Update.
//
// # Writes
//
//   - Keys are unique, and checking and writing are one atomic step: of any number
//     of concurrent Creates of a key exactly one succeeds, and so does one of
//     concurrent Updates with the same resource version.
//   - A resource version that is given and is not the stored one makes the write
//     fail with ErrConflict; none overwrites whatever is stored.
//   - When a write has returned, reads see it. Stores of remote objects may be
//     later than that, and say so.
//   - A write that changes nothing returns the current revision and is no event.
//   - A write that fails has no effect.
//
// # Events
//
// A ConfigStoreCache tells its handlers of every change:
//
//	event        | old                      | curr
//	-------------|--------------------------|---------------------------------------------
//	EventAdd     | the zero Config          | the stored object, revision and times set
//	EventUpdate  | the very object replaced | the stored object
//	EventDelete  | the zero Config          | the last known state
//
// What a handler can rely on:
//
//   - There is one total order of events per cache, the order in which the
//     changes were committed. All handlers of all kinds run on one worker; for
//     each event they run in the order in which they were registered.
//   - When a handler runs, reading the cache returns a state at least as fresh
//     as the event. It may be fresher.
//   - A handler's view starts complete: registered before or after Run, it first
//     receives an EventAdd for every object that exists, then the changes, with
//     no gap and no duplicate.
//   - A handler may write to the store, register handlers, or block. Nobody
//     deadlocks, nothing is lost, and writers never wait for handlers.
//   - An Update that changes nothing sends no event.
//   - A handler that panics takes down whoever drives the cache, as any function
//     would. Nothing stays locked and no event is lost for the others.
//
// Less formally: there is one true timeline per cache, and every handler sees
// all of it.
//
// # Concurrency
//
// Every method of every store may be called from any goroutine.
//
// # Errors
//
// Errors wrap the sentinels of this package with the verb and the object, as in
// "create ServiceEntry default/foo: already exists". Use errors.Is.
package configstore
