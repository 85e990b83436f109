// SPDX-License-Identifier: Apache-2.0

// Package configfeed subscribes to a config cache by the best of its abilities.
package configfeed

import "github.com/pilotkit/pilotkit/configstore"

// Subscribe has a handler called with the changes of some kinds of a cache: by batches if the cache
// has such, otherwise by batches of one. An object that exists is an Add first. After cancel, which
// may be called many times, no call begins, if the cache can end a subscription at all.
func Subscribe(
	cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (cancel func()) {
	if batches, ok := configstore.As[configstore.BatchSubscriber](cache); ok {
		return batches.SubscribeBatch(kinds, handler)
	}
	single := func(old, curr configstore.Config, event configstore.Event) {
		change := configstore.Change{Event: event, Curr: &curr}
		if event == configstore.EventUpdate {
			change.Old = &old
		}
		handler([]configstore.Change{change})
	}
	singles, ok := configstore.As[configstore.Subscriber](cache)
	var cancels []func()
	for _, kind := range kinds {
		if ok {
			cancels = append(cancels, singles.Subscribe(kind, single))
		} else {
			cache.RegisterEventHandler(kind, single)
		}
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}
