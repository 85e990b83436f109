// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
)

// EventHandlerOf is an EventHandler for a kind whose specs have the type T.
type EventHandlerOf[T proto.Message] func(old, curr ConfigOf[T], event Event)

// CacheOf is a StoreOf that notifies handlers of its changes.
type CacheOf[T proto.Message] struct {
	*StoreOf[T]
	cache ConfigStoreCache
}

// TypedCache is Typed for a cache.
func TypedCache[T proto.Message](cache ConfigStoreCache, kind ...GroupVersionKind) *CacheOf[T] {
	return &CacheOf[T]{StoreOf: Typed[T](cache, kind...), cache: cache}
}

// RegisterEventHandler adds a handler for the changes of the kind.
func (c *CacheOf[T]) RegisterEventHandler(handler EventHandlerOf[T]) {
	c.cache.RegisterEventHandler(c.kind, handler.untyped())
}

// Subscribe is like RegisterEventHandler, but returns a cancel function. After
// cancel has returned, no further event is handed to the handler; one that is being handled may still be
// in progress. A cache that is no Subscriber keeps a cancelled handler, without
// effect, for its own lifetime.
func (c *CacheOf[T]) Subscribe(handler EventHandlerOf[T]) (cancel func()) {
	untyped := handler.untyped()
	if s, ok := As[Subscriber](c.cache); ok {
		return s.Subscribe(c.kind, untyped)
	}
	var cancelled atomic.Bool
	c.cache.RegisterEventHandler(c.kind, func(old, curr Config, event Event) {
		if !cancelled.Load() {
			untyped(old, curr, event)
		}
	})
	return func() { cancelled.Store(true) }
}

func (h EventHandlerOf[T]) untyped() EventHandler {
	return func(old, curr Config, event Event) { h(typed[T](old), typed[T](curr), event) }
}
