// SPDX-License-Identifier: Apache-2.0

// Package listing keeps the sorted lists of a store's objects: one list for all objects of a kind,
// and one for each namespace. A list is an immutable slice that is shared by all readers as long as
// nothing changes; after a change the next reader makes it again, out of the last one. A writer
// therefore pays for one key, regardless of the number of objects, and a reader for one copy of
// pointers.
//
// [Lists] belong to a store that has a lock for its writers and lets readers find
// single objects without it. The store calls Note and Drop, with its lock held;
// List may be called by anyone, without it.
//
// # A change
//
// The store commits a change, or a batch, with its lock held, in this order:
//
//  1. It calls Note for each key that is about to change. Note clears fresh in the
//     list of all and in that of the namespace, so that from now on every reader of
//     these lists comes for the lock and waits; and it remembers the key, in
//     pending.
//  2. It makes the change visible.
//  3. It calls Drop for each namespace that has lost its last object.
//
// So no reader sees an object in its new state and then a list in its old one, and
// none sees a part of a batch.
//
// # A read
//
// List returns fresh if there is one: one atomic load. Otherwise it makes it:
//
//  1. It takes the list's making lock: one goroutine makes a list, and other readers of the same
//     list wait for it instead of repeating the work.
//  2. With the store's lock held, it takes the keys in pending, marking with taken
//     how many they are, and looks up their objects; if they are many, it freezes
//     the store's objects to look them up without the lock.
//  3. Without the lock, it merges them into a copy of made, the last list.
//  4. With the lock held, it makes the copy the last list, and removes the taken keys from pending.
//     Keys that were noted meanwhile are still in pending; if there are none, the list is fresh.
//
// # Unread lists
//
// Keys are not remembered forever: when pending has outgrown the list, duplicates are removed from
// it; if that is not enough, the list is lost, and no keys are remembered until it is read again. A
// lost list of all namespaces is made by sorting all objects, the lost list of a namespace is a
// part of the list of all. A list is lost only after as many changes as it has objects, so that the
// cost per change stays constant.
//
// # Invariants
//
// With the store's lock held and no commit in progress:
//
//  1. If fresh is set, pending is empty, the list is not lost, and fresh has the
//     objects that exist, sorted.
//  2. If the list is not lost, every object that exists and is not in made, and every
//     one in made that does not exist any more, has its key in pending.
//  3. pending beyond the taken keys is only appended to; the first taken keys are never changed. A
//     copy of the slice may be read without the lock.
//  4. A namespace has a list if and only if it has objects.
//
// Validate checks 1, 2 and 4.
package listing
