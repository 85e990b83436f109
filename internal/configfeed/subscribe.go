// SPDX-License-Identifier: Apache-2.0

// Package configfeed follows a config cache in the better of its two ways.
package configfeed

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
)

// Subscribe has a handler called with the objects of some kinds of a cache as Adds, and then with
// their changes. A Subscriber delivers batches, and its objects are handled before Subscribe returns.
// Other caches deliver batches of one change. After cancel, which may be called many times, no
// call begins.
func Subscribe(
	cache configstore.ConfigStoreCache, kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (cancel func()) {
	if subscriber, ok := configstore.As[configstore.Subscriber](cache); ok {
		f := &feed{handler: handler}
		objects, cancel := subscriber.Subscribe(kinds, f.handle)
		f.begin(Adds(objects))
		return cancel
	}
	var cancelled atomic.Bool
	for _, kind := range kinds {
		cache.RegisterEventHandler(kind, func(old, curr configstore.Config, event configstore.Event) {
			change := configstore.Change{Event: event, Curr: &curr}
			if event == configstore.EventUpdate {
				change.Old = &old
			}
			if !cancelled.Load() {
				handler([]configstore.Change{change})
			}
		})
	}
	return func() { cancelled.Store(true) }
}

// Adds returns objects as Add events.
func Adds(objects []*configstore.Config) []configstore.Change {
	out := make([]configstore.Change, len(objects))
	for i, o := range objects {
		out[i] = configstore.Change{Event: configstore.EventAdd, Curr: o}
	}
	return out
}

// feed keeps the existing objects before the changes of a Subscriber.
type feed struct {
	handler configstore.BatchHandler

	mu sync.Mutex
	// begun is set when the objects, and the batches that came meanwhile, have been handled.
	begun bool
	early [][]configstore.Change
}

func (f *feed) handle(changes []configstore.Change) {
	f.mu.Lock()
	begun := f.begun
	if !begun {
		f.early = append(f.early, slices.Clone(changes))
	}
	f.mu.Unlock()
	if begun {
		f.handler(changes)
	}
}

func (f *feed) begin(batch []configstore.Change) {
	for more := true; more; batch, more = f.next() {
		if len(batch) > 0 {
			f.handler(batch)
		}
	}
}

// next returns the next early batch. If there is none, the feed has begun.
func (f *feed) next() (batch []configstore.Change, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun = len(f.early) == 0; f.begun {
		return nil, false
	}
	batch, f.early = f.early[0], f.early[1:]
	return batch, true
}
