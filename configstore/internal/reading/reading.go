// SPDX-License-Identifier: Apache-2.0

// Package reading has what readers of a cache call, for caches that show what is in a
// memory.Controller and fill it in a way of their own.
package reading

import "github.com/pilotkit/pilotkit/configstore"

// Cache is a ConfigStoreCache without its writes and its Run, with the optional abilities of
// a memory.Controller. A cache that embeds one has no method of the controller that is for
// those who fill it.
type Cache interface {
	configstore.Reader
	configstore.Syncer
	events
	configstore.Drainer
	configstore.Flusher
	configstore.Deliverer
}

// events are the ways to hear of changes.
type events interface {
	RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler)
	configstore.Subscriber
	configstore.BatchSubscriber
	configstore.ListSubscriber
	configstore.Watcher
}
