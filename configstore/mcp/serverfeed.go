// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// feed is what a cache has delivered. A push takes its configs from here and never from
// the cache, which may be ahead of its events, and then in the middle of a batch.
type feed struct {
	cache configstore.ConfigStoreCache
	kinds []configstore.GroupVersionKind
	// notify is called with the keys of what has changed, with no lock held.
	notify func(keys map[configstore.ConfigKey]struct{})
	// cancel ends the subscription; nil: the cache cannot.
	cancel func()

	mu sync.Mutex
	// pending has the last state of what was delivered since the last take; nil: deleted.
	pending map[configstore.ConfigKey]*configstore.Config
	// unlisted: what the cache had when it was subscribed to may not be delivered yet.
	unlisted bool
}

// newFeed returns a feed of all kinds of a cache. It calls nobody before subscribe.
func newFeed(cache configstore.ConfigStoreCache) *feed {
	f := &feed{cache: cache, pending: make(map[configstore.ConfigKey]*configstore.Config)}
	for _, schema := range cache.Schemas().All() {
		f.kinds = append(f.kinds, schema.GroupVersionKind)
	}
	return f
}

// subscribe subscribes to the cache, in the best way that it has.
func (f *feed) subscribe() {
	if lists, ok := configstore.As[configstore.ListSubscriber](f.cache); ok {
		var objects []*configstore.Config
		objects, f.cancel = lists.ListAndSubscribe(f.kinds, f.add)
		f.list(objects)
		return
	}
	f.unlisted = true
	if batches, ok := configstore.As[configstore.BatchSubscriber](f.cache); ok {
		f.cancel = batches.SubscribeBatch(f.kinds, f.add)
		return
	}
	for _, kind := range f.kinds {
		f.cache.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
			f.add([]configstore.Change{{Event: event, Old: &old, Curr: &curr}})
		})
	}
}

// stop ends the subscription, if the cache can.
func (f *feed) stop() {
	if f.cancel != nil {
		f.cancel()
	}
}

// list takes objects of which there may have been changes since.
func (f *feed) list(objects []*configstore.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range objects {
		if _, newer := f.pending[c.Key()]; !newer {
			f.pending[c.Key()] = c
		}
	}
}

// add takes a batch of events, all at once.
func (f *feed) add(changes []configstore.Change) {
	keys := make(map[configstore.ConfigKey]struct{}, len(changes))
	f.mu.Lock()
	for _, c := range changes {
		key := c.Curr.Key()
		keys[key] = struct{}{}
		if c.Event == configstore.EventDelete {
			f.pending[key] = nil
		} else {
			f.pending[key] = c.Curr
		}
	}
	f.mu.Unlock()
	if len(keys) > 0 {
		f.notify(keys)
	}
}

// take returns the last state of the configs that have changed since the last call; nil:
// deleted. The first call has all that there is, if the cache has synced.
func (f *feed) take() map[configstore.ConfigKey]*configstore.Config {
	f.mu.Lock()
	unlisted := f.unlisted
	f.unlisted = false
	f.mu.Unlock()
	if unlisted {
		for _, kind := range f.kinds {
			f.list(f.cache.List(kind, configstore.NamespaceAll))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.pending
	f.pending = make(map[configstore.ConfigKey]*configstore.Config)
	return out
}
