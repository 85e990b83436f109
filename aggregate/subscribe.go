// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/notify"
)

// RegisterEventHandler implements ConfigStoreCache.
func (c *Cache) RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler) {
	c.subscribe([]configstore.GroupVersionKind{kind}, notify.Subscription[configstore.Change]{
		Handle: func(change configstore.Change) {
			var old configstore.Config
			if change.Old != nil {
				old = *change.Old
			}
			handler(old, *change.Curr, change.Event)
		},
	}, true)
}

// Subscribe implements configstore.Subscriber.
func (c *Cache) Subscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	lists, cancel := c.subscribe(kinds, notify.Subscription[configstore.Change]{Batch: handler}, false)
	return slices.Concat(lists...), cancel
}

// subscribe returns the objects of each kind and registers a handler for the changes after these
// lists. If replayed is true, the handler also gets the objects as Add events.
func (c *Cache) subscribe(
	kinds []configstore.GroupVersionKind, sub notify.Subscription[configstore.Change], replayed bool,
) (lists [][]*configstore.Config, cancel func()) {
	c.refresh()
	canonical := make([]configstore.GroupVersionKind, 0, len(kinds))
	var views []*view
	for _, kind := range kinds {
		v := c.view(&kind)
		if v == nil {
			panic(fmt.Sprintf("aggregate: %v", c.schemas.UnknownKind(kind, nil)))
		}
		if !slices.Contains(canonical, v.kind) {
			canonical = append(canonical, v.kind)
			views = append(views, v)
			v.lists.List(configstore.NamespaceAll) // builds the list before the lock is taken
		}
	}
	sub.Wants = func(change configstore.Change) bool {
		return slices.Contains(canonical, change.Curr.GroupVersionKind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range views {
		lists = append(lists, v.lists.Capture().List(v))
	}
	if replayed {
		sub.Replay = replay(lists)
	}
	return lists, c.queue.Subscribe(sub)
}

// replay yields objects as Adds.
func replay(lists [][]*configstore.Config) iter.Seq[configstore.Change] {
	return func(yield func(configstore.Change) bool) {
		for _, list := range lists {
			for _, config := range list {
				if !yield(configstore.Change{Event: configstore.EventAdd, Curr: config}) {
					return
				}
			}
		}
	}
}
