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

// Subscriber is the optional ability of a cache to end a registration.
type Subscriber interface {
	// Subscribe is like RegisterEventHandler, but returns a cancel function. After
	// cancel has returned, no further event is handed to the handler; one that is being
	// handled may still be in progress. cancel may be called many times, from
	// anywhere, the handler included.
	Subscribe(kind GroupVersionKind, handler EventHandler) (cancel func())
}

// BatchHandler is called with several changes at once, in commit order. The slice is valid only
// until the handler returns; the objects that it refers to are shared and read-only.
type BatchHandler func(changes []Change)

// BatchSubscriber is the optional ability of a cache to deliver, in one call, all events that are
// queued when its worker reaches them, so that a burst costs the receiver one update instead of
// many. The events of one commit (see BatchWriter) are delivered in one call.
type BatchSubscriber interface {
	// SubscribeBatch registers a handler for the changes of several kinds. It
	// sees one timeline for all of them, with the promises of EventHandler.
	// Within one batch all single-event handlers run first. It panics if a kind
	// is unknown.
	SubscribeBatch(kinds []GroupVersionKind, handler BatchHandler) (cancel func())
}

// ListSubscriber is the optional ability of a cache to return what exists with a
// registration instead of replaying it: the handler's view is then complete at once,
// also if nothing runs yet.
type ListSubscriber interface {
	// ListAndSubscribe is like SubscribeBatch, but returns the objects that exist, of
	// one moment, in the order of kinds, then of List; the handler gets the changes
	// after that moment, without gap or duplicate. The handler
	// may be called before ListAndSubscribe returns.
	ListAndSubscribe(kinds []GroupVersionKind, handler BatchHandler) (objects []*Config, cancel func())
}
