// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

func newWidgets() (v *view, mu *sync.Mutex, widget func(generation int64) *configstore.Config) {
	mu = &sync.Mutex{}
	v = newView(configstore.GroupVersionKind{Version: "v1", Kind: "Widget"}, mu)
	return v, mu, func(generation int64) *configstore.Config {
		return &configstore.Config{Meta: configstore.Meta{GroupVersionKind: v.kind, Namespace: "ns", Name: "x", Generation: generation}}
	}
}

// An object that takes the place of an equal one of another member is no event,
// but it is the one that is seen.
func TestEqualObjectTakesOverSilently(t *testing.T) {
	v, _, widget := newWidgets()
	late, early := widget(1), widget(1)
	k := listing.KeyOf(late)
	if change, ok := v.set(1, k, late); !ok || change.Event != configstore.EventAdd {
		t.Errorf("the first is %v, %t, want an Add", change, ok)
	}
	if change, ok := v.set(0, k, early); ok {
		t.Errorf("an equal object of an earlier member is an event: %v", change)
	}
	if v.Get(k) != early || v.lists.List("ns").Items[0] != early {
		t.Error("the object of the earlier member is not the one that is seen")
	}
	if change, ok := v.set(0, k, nil); ok {
		t.Errorf("falling back to an equal object is an event: %v", change)
	}
	if v.Get(k) != late || v.lists.List("ns").Items[0] != late {
		t.Error("the object of the later member is not seen again")
	}
	v.set(0, k, early)
	if change, ok := v.set(1, k, widget(2)); ok {
		t.Errorf("a change of a shadowed object is an event: %v", change)
	}
	if change, ok := v.set(0, k, nil); !ok || change.Event != configstore.EventUpdate || change.Old != early {
		t.Errorf("falling back to another state is %v, %t, want an Update", change, ok)
	}
}

// A list is never older than what was read before it, whatever has changed.
func TestListsAreNotOlderThanObjects(t *testing.T) {
	v, mu, widget := newWidgets()
	k := listing.KeyOf(widget(0))
	var added atomic.Int64 // the last generation that was added
	var over atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !over.Load() && !t.Failed() {
				before, got, listed := added.Load(), v.Get(k), int64(0)
				if list := v.lists.List("ns"); list != nil && len(list.Items) > 0 {
					listed = list.Items[0].Generation
				}
				switch {
				case got != nil && listed != 0 && listed < got.Generation:
					t.Errorf("generation %d is listed after %d was read", listed, got.Generation)
				case got != nil && listed == 0 && v.Get(k) == got:
					t.Errorf("generation %d is not listed, though it is there", got.Generation)
				case got == nil && listed != 0 && listed <= before:
					t.Errorf("generation %d is listed after it was gone", listed)
				}
			}
		})
	}
	set := func(c *configstore.Config) {
		mu.Lock()
		v.set(0, k, c)
		mu.Unlock()
		v.lists.List("ns") // so that there is one that a reader may find
	}
	for i := int64(1); i < 30_000 && !t.Failed(); i += 2 {
		set(widget(i))
		added.Store(i)
		set(widget(i + 1))
		added.Store(i + 1)
		set(nil)
	}
	over.Store(true)
	readers.Wait()
}
