// SPDX-License-Identifier: Apache-2.0

// Package publish is the common part of all registries: it publishes the states that a registry
// computes to readers, and reports the changes to the updater and to handlers.
//
// A registry creates a [Publisher] for its states, which are immutable values of a type S. For each
// new state it describes the difference in a [Change].
//
// # The path of one change
//
//  1. The registry receives an input and calls [Publisher.Enqueue] with an event of its type E, on
//     any goroutine.
//  2. The delivering goroutine, of which there is at most one, passes all queued events to
//     Options.Handle as one batch.
//  3. Handle computes the next state and calls [Publisher.Publish] with it and the Change. The
//     state
//     becomes visible to [Publisher.State]. The Change is committed as one xdsupdate.Update: the
//     services of the state, then the calls SvcUpdate, EDSUpdate (or EDSDeltaUpdate, if the changes are
//     shorter than the list), one ConfigUpdate for each reason, and ProxyUpdate. An updater of the host
//     is called for it after the commit, without a lock.
//  4. The events for handlers are appended to the queue of the input events.
//  5. The delivering goroutine calls the handlers before it passes further events to Handle. It
//     holds no lock.
//
// A registry whose callers need the result of a change immediately has no Handle, and calls
// [Publisher.Commit] instead of steps 1 to 3, on any goroutine. States become visible in the order
// of the commits. If another goroutine is delivering, it also makes the calls for this commit.
//
// # Subscriptions
//
// A handler is registered at a position in the queue, together with the last announced state. When
// the delivering goroutine reaches this position, it replays that state to the handler as
// additions. The state contains all changes announced before the position, and no later ones. Each
// handler therefore sees all changes in the order of the other handlers, without gaps or
// repetitions.
//
// # Lists of endpoints
//
// [Edit] computes the next list of a service's endpoints together with the changes for the updater.
//
// # Panics
//
// A panic of an updater or handler ends that call. It is logged once, with the stack, and the
// publisher continues. The same holds for a panic of Handle; states that it has not published are
// lost.
package publish
