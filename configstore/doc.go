// SPDX-License-Identifier: Apache-2.0

// Package configstore says what a config is and how a store of configs
// behaves. It holds declarations only, for any protobuf message: the Istio
// kinds are in configstore/istio, an implementation in configstore/memory, and
// a suite that proves an implementation in configstore/storetest.
//
// # Immutability
//
// A Config that was handed to a store or came from one must not be modified any
// more: not its Spec, not its Status, not its maps. Get and List hand out
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
// A ConfigStoreCache notifies its handlers of every change:
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
//   - A handler may write to the store, register handlers, or block: there is no
//     deadlock, nothing is lost, and writers never wait for handlers.
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
//	Drain()     | delivers what is queued       | nothing: Run delivers  | nothing
//	Flush(ctx)  | delivers what is queued       | waits for Run          | returns an error
//	HasSynced() | false until the first Drain   | true once the initial  | as it was when
//	            |                               | state has been handled | Run ended
//
// [WaitForSync] waits for HasSynced of many.
//
// Registries deliver without Run as well, on the goroutine that makes a change or
// brings an event; their HasSynced is that of their source, whoever drives it.
//
// Run finishes the event in progress, joins what it started and drops what is
// still queued. [Drainer] and [Flusher] name the two optional methods.
//
// # Panics
//
// A function of the program that this module calls by itself - a handler, an updater, a
// validator, a function in Options - may panic. It costs that one call, wherever in
// the module it is made:
//
//   - A handler is not called with that event again. All others are called with it, and
//     the handler with what comes next. What the updater of a registry misses in one
//     call it gets with the next change of the same thing.
//   - What the call was to decide stays as it was; where nothing was before, the
//     function's documentation says what counts. A validator that panics refuses its
//     object.
//   - It is logged once, as an error with the message "panic" and the stack, by the
//     Logger in the Options of what made the call; without a Logger it is dropped.
//   - Nothing stays locked. Run, Drain, Flush and the write that caused the call go on.
//
// What is a mistake in a call of this module, as a second Run or an unknown kind,
// panics in that call, and is the caller's to see; within a handler it is a panic of
// the handler. What memory.Options.DetectMutations finds is meant to stop the
// program, and does so within handlers, too. runtime.Goexit ends the goroutine that
// delivers, and its Run; who delivers next continues.
//
// # Abilities and wrappers
//
// The interfaces of this package do not grow: programs implement them. What a store
// can do beyond ConfigStore and ConfigStoreCache is an interface of its own, with
// one or two methods: [Watcher], [Subscriber], [BatchSubscriber], [ListSubscriber],
// [BatchWriter], [Drainer], [Flusher], [Deliverer], [SourceRegistrar]. Consumers look for
// them with [As] and do without where they are missing.
//
// A type that wraps a store must not hide its abilities by accident. It does one
// of two things:
//
//   - A wrapper whose reads and events are those of the wrapped store, as one that
//     counts or logs calls, has a method Unwrap() ConfigStore, which returns the
//     wrapped store. As then finds the abilities that the wrapper does not have
//     itself.
//   - A wrapper that shows something else, as one that filters or renames, has no
//     Unwrap and implements the abilities itself, as far as it has them.
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
