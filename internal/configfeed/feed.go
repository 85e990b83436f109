// SPDX-License-Identifier: Apache-2.0

// Package configfeed has what a cache of configs has delivered, for those who take it in steps of their
// own: the pushes of a server. They take their configs from here and never from the cache, which
// may be ahead of its events: with a slow handler of the program by any time, and then in the
// middle of what was written together. Registries see a store in the same way.
package configfeed

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// Feed is what is new of some kinds of a cache. Create it with New.
type Feed struct {
	cache configstore.ConfigStoreCache
	kinds []configstore.GroupVersionKind
	// Notify is called with the keys of what has changed, with no lock held. It is to be set before
	// Subscribe.
	Notify func(keys map[configstore.ConfigKey]struct{})
	// Same reports whether an update concerns nobody; nil: none does.
	Same func(old, curr *configstore.Config) bool

	// cancel ends the subscription; nil: there is none.
	cancel func()

	mu sync.Mutex
	// pending has the last state of what is new since the last Take; nil: deleted.
	pending map[configstore.ConfigKey]*configstore.Config
}

// New returns a feed. It calls nobody before Subscribe.
func New(cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind) *Feed {
	return &Feed{cache: cache, kinds: kinds, pending: make(map[configstore.ConfigKey]*configstore.Config)}
}

// Subscribe subscribes to the cache, in the best way that it has. It reports whether what there
// was before all events is taken, too; otherwise that is for List.
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

// List takes what the cache has, one kind after the other.
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

// begin takes what there was before all events: of what already had one, that counts.
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

// note returns the keys of what has changed.
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

// Take returns the last state of the configs that are new since the last call; nil: deleted.
func (f *Feed) Take() map[configstore.ConfigKey]*configstore.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.pending
	f.pending = make(map[configstore.ConfigKey]*configstore.Config)
	return out
}

// Delivering reports whether the cache is handing out changes, if it says so.
func (f *Feed) Delivering() bool {
	cache, ok := configstore.As[configstore.Deliverer](f.cache)
	return ok && cache.Delivering()
}
