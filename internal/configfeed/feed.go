// SPDX-License-Identifier: Apache-2.0

// Package configfeed collects the changes that a config cache has delivered, for consumers that
// process them in steps of their own, such as the pushes of a server. Such a consumer reads configs
// from the feed and never from the cache, because the cache may be ahead of its events: by any time
// if a handler of the host is slow, and then in the middle of a batch. Registries see a store in
// the same way.
package configfeed

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// Feed collects the changes of some kinds of a cache. Create it with New.
type Feed struct {
	cache configstore.ConfigStoreCache
	kinds []configstore.GroupVersionKind
	// Notify is called with the keys of the changed configs, with no lock held. Set it before
	// Subscribe.
	Notify func(keys map[configstore.ConfigKey]struct{})
	// Same reports whether an update can be ignored. If Same is nil, no update is ignored.
	Same func(old, curr *configstore.Config) bool

	// cancel ends the subscription, nil if there is none.
	cancel func()

	mu sync.Mutex
	// pending has the last state of the configs that changed since the last Take, nil for deleted
	// ones.
	pending map[configstore.ConfigKey]*configstore.Config
}

// New returns a feed. It calls nobody before Subscribe.
func New(cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind) *Feed {
	return &Feed{cache: cache, kinds: kinds, pending: make(map[configstore.ConfigKey]*configstore.Config)}
}

// Subscribe subscribes to the cache by the best available ability. It reports whether the objects
// from before the first event are included; if not, call List for them.
func (f *Feed) Subscribe() (listed bool) {
	if lists, ok := configstore.As[configstore.ListSubscriber](f.cache); ok {
		var existing []*configstore.Config
		existing, f.cancel = lists.ListAndSubscribe(f.kinds, f.add)
		f.begin(existing)
		return true
	}
	f.cancel = Subscribe(f.cache, f.kinds, f.add)
	return false
}

// List adds the current objects of the cache, one kind after the other.
func (f *Feed) List() {
	for _, kind := range f.kinds {
		f.begin(f.cache.List(kind, configstore.NamespaceAll))
	}
}

// Stop ends the subscription, if the cache can.
func (f *Feed) Stop() {
	if f.cancel != nil {
		f.cancel()
	}
}

// begin adds the objects from before the first event. An object with an event keeps the state of
// the event.
func (f *Feed) begin(existing []*configstore.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range existing {
		if _, newer := f.pending[c.Key()]; !newer {
			f.pending[c.Key()] = c
		}
	}
}

// add takes a batch of events, all at once.
func (f *Feed) add(changes []configstore.Change) {
	if keys := f.note(changes); len(keys) > 0 {
		f.Notify(keys)
	}
}

// note records changes and returns the keys of the changed configs.
func (f *Feed) note(changes []configstore.Change) map[configstore.ConfigKey]struct{} {
	keys := make(map[configstore.ConfigKey]struct{}, len(changes))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		if c.Event == configstore.EventUpdate && f.Same != nil && f.Same(c.Old, c.Curr) {
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

// Take returns the last state of the configs that changed since the last call, nil for deleted
// ones.
func (f *Feed) Take() map[configstore.ConfigKey]*configstore.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.pending
	f.pending = make(map[configstore.ConfigKey]*configstore.Config)
	return out
}
