// SPDX-License-Identifier: Apache-2.0

package configstore

// EventHandler is called with one change, by the table in the package comment.
type EventHandler func(old, curr Config, event Event)

// ConfigStoreCache is a ConfigStore that notifies handlers of its changes. The
// package comment states what handlers can rely on.
type ConfigStoreCache interface {
	ConfigStore

	// RegisterEventHandler adds a handler for the changes of one kind. It panics
	// if the kind is unknown: that is a programming error.
	RegisterEventHandler(kind GroupVersionKind, handler EventHandler)

	// Run delivers events until stop is closed. It finishes the event in
	// progress and returns when its worker has ended. A second call panics.
	Run(stop <-chan struct{})

	// HasSynced reports whether the source has delivered its initial state and
	// every handler registered before Run has processed it.
	HasSynced() bool
}

// BatchHandler is called with several changes at once, in commit order: all that are queued when the
// cache's worker reaches them, so that a burst costs the receiver one update instead of many. The
// events of one commit (see BatchWriter) are delivered in one call. The slice is valid only until the
// handler returns; the objects that it refers to are shared and read-only.
type BatchHandler func(changes []Change)

// Subscriber is the optional ability of a cache to deliver the changes of several kinds by batches,
// and to end that.
type Subscriber interface {
	// Subscribe returns the objects of some kinds that exist, of one moment, in the order of kinds,
	// then of List, and calls handler with the changes after that moment, without gap or duplicate.
	// The objects are complete also if nothing runs yet. The handler sees one timeline for all kinds,
	// with the promises of EventHandler; within one batch all single-event handlers run first. It may
	// be called before Subscribe returns.
	//
	// After cancel has returned, no further batch is handed to the handler; one that is being
	// handled may still be in progress. cancel may be called many times, from anywhere, the handler
	// included. Subscribe panics if a kind is unknown.
	Subscribe(kinds []GroupVersionKind, handler BatchHandler) (objects []*Config, cancel func())
}
