// SPDX-License-Identifier: Apache-2.0

// Package memory keeps configs in memory: a [Store] with one monotonic revision,
// atomic batches, watches and snapshots, and a [Controller], which is the store
// with event handlers.
//
// # Revisions
//
// Every committed change of any kind raises the store's revision by one; the
// ResourceVersion of an object is, in decimal, the revision of the change that
// stored it. A write that changes nothing has no revision and no event.
//
// # Events
//
// A Controller keeps the promises of package configstore. Several controllers of
// one store, and several watches, see the same history: the order of the
// revisions. A write through the store is a write through its controllers, and
// the reverse.
//
// # Concurrency
//
// All methods may be called from any goroutine, handlers included. Writes are
// serialised. Get, and List of what has not changed since it was listed last,
// take no lock at all; other reads take the writers' lock only for a moment whose
// length does not depend on the number of objects, so that neither readers nor
// watches nor handlers hold up a writer.
//
// A read sees all changes up to some revision and none after it, for each object
// and for each list: those of a batch appear together. Reads that must agree with
// each other take a [Snapshot].
//
// # Errors
//
// They are those of package configstore, wrapped with the verb and the object:
// "create ServiceEntry default/foo: already exists".
package memory
