// SPDX-License-Identifier: Apache-2.0

// Package publish is the half of a registry that is the same for all of them: from
// the next state that a registry has computed to the readers, the updater and the
// handlers that are to learn of it.
//
// A registry brings states, immutable values of a type S of its own, and says in a
// [Change] what differs from the state before. A [Publisher] does the rest.
//
// # The path of one change
//
//  1. The registry learns of something, and calls [Publisher.Enqueue] with an event
//     of a type E of its own, on any goroutine.
//  2. The goroutine that delivers, of which there is at most one, hands everything
//     that is waiting to Options.Handle, as one batch.
//  3. Handle computes the next state and calls [Publisher.Publish] with it and the
//     Change. In one batch of the updater (xdsupdate.BatchUpdater) the state becomes
//     visible to [Publisher.State], and the updater is called in the order SvcUpdate,
//     EDSUpdate (or its delta form, if the updater takes it and it is the shorter
//     one), ConfigUpdate, one for each reason. ProxyUpdate follows, outside of the
//     batch, as a program may do anything in it.
//  4. What handlers are to see is put into the same queue as the events.
//  5. The delivering goroutine calls the handlers, before it hands over further
//     events. No lock is held.
//
// A registry whose callers want to know at once what became of a change has no
// Handle, and calls [Publisher.Commit] instead of 1 to 3, on any goroutine. States
// then are visible in the order of the commits; a goroutine that commits while
// another one is calling the updater leaves its calls to that one.
//
// # Subscriptions
//
// A handler is registered at a place in the queue, with the state that was reported
// last. When the delivering goroutine reaches it, it hands it what that state has, as
// additions: everything that was announced before, and nothing that is announced behind
// it. So each handler sees the changes in the order in which those before it do, without
// a gap and without a repetition.
//
// # Lists of endpoints
//
// [Edit] makes the next list of a service's endpoints and the changes that lead to
// it, which a Change hands to the updater.
//
// # Panics
//
// A panic of a call of the updater or of a handler ends that call. It is logged once,
// with the stack, and everything else goes on. So does a panic of Handle: what it has
// not published then is not visible.
package publish
