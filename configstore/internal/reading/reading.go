// SPDX-License-Identifier: Apache-2.0

// Package reading declares the read methods of a cache, for caches that show the content of a
// memory.Controller and fill it in their own way.
package reading

import "github.com/pilotkit/pilotkit/configstore"

// Cache is a ConfigStoreCache without its writes and its Run, with the optional abilities of a
// memory.Controller. A cache that embeds a Cache does not expose the controller's methods for
// filling it.
type Cache interface {
	configstore.Reader
	configstore.Syncer
	events
	configstore.Drainer
	configstore.Flusher
}

// events are the ways to receive changes.
type events interface {
	RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler)
	configstore.Subscriber
	configstore.Watcher
}
