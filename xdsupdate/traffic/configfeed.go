// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// kinds returns those that take effect here.
func kinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar}
}

// configFeed is what a cache has delivered. A push takes its configs from here and
// never from the cache, which may be ahead of its events: with a slow handler of the
// host by any time, and then in the middle of what was written together.
type configFeed struct {
	cache configstore.ConfigStoreCache
	// notify is called with the keys of what has changed, with no lock held.
	notify func(keys map[configstore.ConfigKey]struct{})

	mu sync.Mutex
	// pending has the last state of what was delivered since the last take; nil: deleted.
	pending map[configstore.ConfigKey]*configstore.Config
	// subscription numbers the subscriptions: pending has the events of the last one.
	subscription int
	cancel       func()
	// former ends the subscription before, which goes on until the last one has events:
	// those that come before them are in what was listed, but others have yet to be told
	// that they were changes. Nil: it has ended.
	former func()
}

// newConfigFeed subscribes to a cache.
func newConfigFeed(cache configstore.ConfigStoreCache, notify func(map[configstore.ConfigKey]struct{})) *configFeed {
	f := &configFeed{cache: cache, notify: notify, pending: make(map[configstore.ConfigKey]*configstore.Config)}
	if _, ok := configstore.As[configstore.ListSubscriber](cache); ok {
		f.listAndSubscribe()
		return f
	}
	if batches, ok := configstore.As[configstore.BatchSubscriber](cache); ok {
		batches.SubscribeBatch(kinds(), func(changes []configstore.Change) { f.add(0, changes) })
		return f
	}
	for _, kind := range kinds() {
		cache.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
			f.add(0, []configstore.Change{{Event: event, Old: &old, Curr: &curr}})
		})
	}
	return f
}

// list returns the configs that there are, also if the cache does not run yet; take
// then returns what comes after. Only of a ListSubscriber they are of one moment.
func (f *configFeed) list() []*configstore.Config {
	if _, ok := configstore.As[configstore.ListSubscriber](f.cache); ok {
		return f.listAndSubscribe()
	}
	f.take() // what was delivered is in the lists
	var out []*configstore.Config
	for _, kind := range kinds() {
		out = append(out, f.cache.List(kind, configstore.NamespaceAll)...)
	}
	return out
}

// listAndSubscribe replaces the subscription to a ListSubscriber.
func (f *configFeed) listAndSubscribe() []*configstore.Config {
	f.mu.Lock()
	f.subscription++
	current := f.subscription
	f.former = f.cancel
	clear(f.pending)
	f.mu.Unlock()
	cache, _ := configstore.As[configstore.ListSubscriber](f.cache)
	configs, cancel := cache.ListAndSubscribe(kinds(), func(changes []configstore.Change) { f.add(current, changes) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel = cancel
	return configs
}

// add takes a batch of events, all at once.
func (f *configFeed) add(subscription int, changes []configstore.Change) {
	if keys := f.note(subscription, changes); len(keys) > 0 {
		f.notify(keys)
	}
}

// note returns the keys of what has changed.
func (f *configFeed) note(subscription int, changes []configstore.Change) map[configstore.ConfigKey]struct{} {
	keys := make(map[configstore.ConfigKey]struct{}, len(changes))
	f.mu.Lock()
	defer f.mu.Unlock()
	last := subscription == f.subscription
	if last && f.former != nil {
		f.former()
		f.former = nil
	}
	for _, c := range changes {
		if c.Event == configstore.EventUpdate && sameConfig(c.Old, c.Curr) {
			continue
		}
		key := c.Curr.Key()
		keys[key] = struct{}{}
		switch {
		case !last:
		case c.Event == configstore.EventDelete:
			f.pending[key] = nil
		default:
			f.pending[key] = c.Curr
		}
	}
	return keys
}

// take returns the last state of the configs that have changed since the last call;
// nil: deleted.
func (f *configFeed) take() map[configstore.ConfigKey]*configstore.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.pending
	f.pending = make(map[configstore.ConfigKey]*configstore.Config)
	return out
}

// delivering reports whether the cache is handing out changes, if it says so.
func (f *configFeed) delivering() bool {
	cache, ok := configstore.As[configstore.Deliverer](f.cache)
	return ok && cache.Delivering()
}

// sameConfig reports whether two states of a config, each of which may be nil, are the
// same to clients: an object's status, labels and annotations concern none.
func sameConfig(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.CreationTimestamp.Equal(b.CreationTimestamp) && configstore.EqualMessage(a.Spec, b.Spec)
}
