// SPDX-License-Identifier: Apache-2.0

// Package notify delivers events: it is the only caller of the handlers of stores,
// registries and updaters in this module.
//
// A [Queue] is an unbounded first-in-first-out queue. A publisher pushes changes while it holds the
// lock under which they are committed, so that the order of the queue is the order of the commits.
// Only the worker calls handlers, with no lock held. The worker is the goroutine in [Queue.Run], in
// [Queue.Drain] or in [Queue.Flush]: at most one at any time. A publisher without a goroutine of
// its own, such as a registry that handles each change at once, calls Drain after it has released
// its lock; within a handler Drain returns at once, and the delivery in progress continues with the
// pushed changes.
//
// # Events
//
//   - Every handler sees every value that is pushed after its registration, in the order of the
//     queue. For each value, handlers run in order of registration.
//   - A registration has a position in the queue, like a value. When the worker
//     reaches it, it hands the registration's replay to the new handler, and to
//     no other. A publisher that registers under its lock, with its state as the
//     replay, therefore gives the handler a complete view without gap or
//     duplicate.
//   - The values that are queued when the worker looks form one batch; the values of one Push are
//     always in the same batch. Within a batch, all handlers of single values run first, then the
//     batch handlers, which get all of it or, if delivery ends before, nothing.
//   - After Run has ended, values are neither queued nor delivered.
//
// # Concurrency
//
// All methods may be called from any goroutine, handlers included, but for Flush,
// which a handler must not call: it would wait for itself. The life cycle is that
// of package configstore.
//
// # Panics
//
// A panic of a handler ends that call: Options.Panicked is called, the handler is not called with
// the value again, and the queue goes on with the next handler of the same value. A panic that
// guard does not recover, and runtime.Goexit, ends the delivery of that goroutine, including Run;
// the queue stays intact, and the next delivery continues with the next handler.
package notify
