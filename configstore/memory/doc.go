// SPDX-License-Identifier: Apache-2.0

// Package memory keeps configs in memory: a [Store] with one monotonic revision,
// atomic batches, watches and snapshots, and a [Controller], which is the store
// with event handlers.
//
// # Revisions
//
// Every committed change of any kind raises the store's revision by one. The ResourceVersion of an
// object is the decimal revision of the change that stored it, except in a mirror (Options.Mirror)
// of a store with resource versions of its own. A write that changes nothing has no revision and no
// event.
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
// All methods may be called from any goroutine, handlers included. Writes are serialised. Get, and
// List of objects that have not changed since the last List, take no lock at all. Other reads take
// the writers' lock only for a moment whose length does not depend on the number of objects, so
// that neither readers nor watches nor handlers delay a writer. Concurrent readers of the same
// changed list wait for one of them to make it.
//
// A read sees all changes up to some revision and none after it, for each object and for each list,
// so that the changes of a batch appear together. Reads that must agree with each other take a
// [Snapshot].
//
// # How a write works
//
// One mutex serialises writers. Readers find objects in a map that the writer changes concurrently;
// one number, the committed revision, decides which versions they see. A write, or a batch, goes
// these steps:
//
//  1. Prepare, without the lock: find the kind, validate, and compare an Update with the stored
//     object.
//  2. Take the lock.
//  3. plan.add, for each mutation: check it against the object as it is, or as an
//     earlier mutation of the batch leaves it, and make the object's next version
//     with the next revision. An error ends the write here, without a trace.
//  4. plan.install: announce each change to the lists of its kind, and put the new
//     version into the map with prev pointing to the version before. A reader that
//     finds a version newer than the committed revision uses prev.
//  5. Raise the committed revision: all of the batch is visible at once.
//  6. plan.finish: clear prev, remove deleted objects from the map, and drop the lists of empty
//     namespaces.
//  7. Append the changes to the history, which wakes the watches.
//  8. Push them to the queues of the controllers.
//  9. Release the lock, and report warnings.
//
// Readers make lists on demand; package internal/listing explains how. A Snapshot freezes the map
// of each kind at step 5 of some write; later writers copy the parts that they change.
//
// # Invariants
//
// While no commit is in progress:
//
//  1. Every version in a map exists, has no prev, and has a revision of at least 1
//     and at most the committed one, which is its ResourceVersion but in a mirror.
//  2. The lists of each kind keep the invariants of internal/listing.
//  3. The history ends with the committed revision and has no gap.
//  4. The kept snapshot, if there is one, is of the committed revision.
//
// # Errors
//
// Errors wrap the sentinels of package configstore with the verb and the object: "create
// ServiceEntry default/foo: already exists".
package memory
