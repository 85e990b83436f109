// SPDX-License-Identifier: Apache-2.0

// Package configstore defines configs and the contract of the stores that hold them. It contains
// declarations only, for any protobuf message: the Istio kinds are in configstore/istio, an
// implementation in configstore/memory, and a suite that proves an implementation in
// configstore/storetest.
//
// # Immutability
//
// A Config that was handed to a store or came from one must not be modified: neither its Spec, nor
// its Status, nor its maps. Get and List return the stored objects themselves. To change an object,
// Clone it, change the clone and Update.
//
// # Writes
//
//   - Keys are unique, and checking and writing are one atomic step: of any number
//     of concurrent Creates of a key exactly one succeeds, and so does one of
//     concurrent Updates with the same resource version.
//   - A write with a resource version that differs from the stored one fails with ErrConflict. A
//     write without a resource version overwrites the stored object.
//   - Reads see a write as soon as it has returned. Stores of remote objects may lag, and say so.
//   - A write that changes nothing returns the current revision and causes no event.
//   - A write that fails has no effect.
//
// # Events
//
// A ConfigStoreCache notifies its handlers of every change:
//
//	event        | old                      | curr
//	-------------|--------------------------|---------------------------------------------
//	EventAdd     | the zero Config          | the stored object, revision and times set
//	EventUpdate  | the very object replaced | the stored object
//	EventDelete  | the zero Config          | the last known state
//
// A handler can rely on these guarantees:
//
//   - There is one total order of events per cache, the order of the commits. All handlers of all
//     kinds run on one worker; for each event they run in order of registration.
//   - When a handler runs, reading the cache returns a state at least as fresh
//     as the event. It may be fresher.
//   - A handler's view starts complete: registered before or after Run, it first
//     receives an EventAdd for every object that exists, then the changes, with
//     no gap and no duplicate.
//   - A handler may write to the store, register handlers, or block: there is no deadlock, no event
//     is lost, and writers never wait for handlers.
//   - An Update that changes nothing sends no event.
//   - A panic of a handler costs that call: see Panics.
//
// Less formally: there is one true timeline per cache, and every handler sees
// all of it.
//
// # Life cycle
//
// Everything of this module that delivers events has the same life, whether it is
// a cache, a registry or an updater. A constructor starts nothing.
//
//	            | before Run                    | while Run runs         | after Run
//	------------|-------------------------------|------------------------|-----------------
//	Run(stop)   | delivers until stop is closed | panics                 | panics
//	Drain()     | delivers queued events        | no effect              | no effect
//	Flush(ctx)  | delivers queued events        | waits for Run          | returns an error
//	HasSynced() | false until the first Drain   | true once the initial  | as it was when
//	            |                               | state has been handled | Run ended
//
// [WaitForSync] waits for HasSynced of several of them.
//
// Registries deliver without Run as well, on the goroutine that makes a change or brings an event.
// Their HasSynced is that of their source, regardless of how the source is driven.
//
// Run finishes the event in progress, joins the goroutines that it started and drops the events
// that are still queued. [Drainer] and [Flusher] declare the two optional methods.
//
// # Panics
//
// A function of the host that this module calls - a handler, an updater, a validator, a function in
// Options - may panic. The panic affects only that call, wherever in the module it is made:
//
//   - A handler is not called with that event again. All other handlers are called with it, and the
//     panicking handler receives the next events. A registry repeats the change that its updater
//     missed with the next change of the same service or shard.
//   - The state that the call was to decide stays as it was; the function's documentation states
//     the default when there was none. A validator that panics rejects its object.
//   - The panic is logged once, as an error with the message "panic" and the stack, by the Logger
//     in the Options of the component that made the call; without a Logger it is dropped.
//   - Nothing stays locked. Run, Drain, Flush and the write that caused the call go on.
//
// A mistake in a call of this module, such as a second Run or an unknown kind, panics in that call,
// and the caller must fix it; within a handler it is a panic of the handler. The panics of
// memory.Options.DetectMutations are meant to stop the process, and do so within handlers, too.
// runtime.Goexit ends the goroutine that delivers, and its Run; the next delivery continues where
// it stopped.
//
// # Abilities and wrappers
//
// The interfaces of this package do not grow, because hosts implement them. Each ability of a store
// beyond ConfigStore and ConfigStoreCache is an interface of its own, with one or two methods:
// [Watcher], [Subscriber], [BatchWriter], [Drainer], [Flusher], [SourceRegistrar]. Consumers look for
// them with [As] and work without the missing ones.
//
// A program follows a cache in one of two ways: by RegisterEventHandler, which every cache has, or by
// a [Subscriber], which every cache of this module is. A [Watcher] has numbers for reads that must not
// lag behind a store.
//
// A type that wraps a store must not hide its abilities by accident. It does one
// of two things:
//
//   - A wrapper with the reads and events of the wrapped store, for example one that counts or logs
//     calls, has a method Unwrap() ConfigStore, which returns the wrapped store. As then finds the
//     abilities that the wrapper itself lacks.
//   - A wrapper that shows other content, for example one that filters or renames, has no Unwrap
//     and implements the abilities itself, as far as it has them.
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
