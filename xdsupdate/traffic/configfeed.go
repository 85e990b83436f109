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

// configFeed is what a cache had when the policies subscribed to it, and has delivered
// since. A push takes its configs from here and never from the cache, which may be ahead
// of its events: with a slow handler of the host by any time, and then in the middle of
// what was written together. Registries see a store in the same way.
type configFeed struct {
	cache configstore.ConfigStoreCache
	// notify is called with the keys of what has changed, with no lock held.
	notify func(keys map[configstore.ConfigKey]struct{})

	mu sync.Mutex
	// pending has the last state of what is new since the last take; nil: deleted.
	pending map[configstore.ConfigKey]*configstore.Config
}

// newConfigFeed subscribes to a cache.
func newConfigFeed(cache configstore.ConfigStoreCache, notify func(map[configstore.ConfigKey]struct{})) *configFeed {
	f := &configFeed{cache: cache, notify: notify, pending: make(map[configstore.ConfigKey]*configstore.Config)}
	if lists, ok := configstore.As[configstore.ListSubscriber](cache); ok {
		existing, _ := lists.ListAndSubscribe(kinds(), f.add)
		f.begin(existing)
		return f
	}
	if batches, ok := configstore.As[configstore.BatchSubscriber](cache); ok {
		batches.SubscribeBatch(kinds(), f.add)
	} else {
		for _, kind := range kinds() {
			cache.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
				f.add([]configstore.Change{{Event: event, Old: &old, Curr: &curr}})
			})
		}
	}
	for _, kind := range kinds() {
		f.begin(cache.List(kind, configstore.NamespaceAll))
	}
	return f
}

// begin takes what there was before all events: of what already had one, that counts.
func (f *configFeed) begin(existing []*configstore.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range existing {
		if _, ok := f.pending[c.Key()]; !ok {
			f.pending[c.Key()] = c
		}
	}
}

// add takes a batch of events, all at once.
func (f *configFeed) add(changes []configstore.Change) {
	if keys := f.note(changes); len(keys) > 0 {
		f.notify(keys)
	}
}

// note returns the keys of what has changed.
func (f *configFeed) note(changes []configstore.Change) map[configstore.ConfigKey]struct{} {
	keys := make(map[configstore.ConfigKey]struct{}, len(changes))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		if c.Event == configstore.EventUpdate && sameConfig(c.Old, c.Curr) {
			continue
		}
		key := c.Curr.Key()
		keys[key] = struct{}{}
		if f.pending[key] = c.Curr; c.Event == configstore.EventDelete {
			f.pending[key] = nil
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
// same to clients: an object's status, labels and annotations concern none, but for the one
// that says how paths are matched.
func sameConfig(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.CreationTimestamp.Equal(b.CreationTimestamp) && configstore.EqualMessage(a.Spec, b.Spec) &&
		matchesElements(a) == matchesElements(b)
}
