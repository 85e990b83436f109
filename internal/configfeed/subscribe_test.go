// SPDX-License-Identifier: Apache-2.0

package configfeed_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/configfeed"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func limitKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
}

func newCache(t *testing.T) (cache *memory.Controller, create func(name string)) {
	t.Helper()
	cache = memory.NewController(memory.Make(configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: limitKind(), Spec: &structpb.Value{}}).Build()))
	return cache, func(name string) {
		t.Helper()
		if _, err := cache.Create(configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: limitKind(), Namespace: "default", Name: name}, Spec: structpb.NewBoolValue(true),
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// hasty is a Subscriber that calls the handler before Subscribe returns.
type hasty struct {
	*memory.Controller
	before func()
}

func (h hasty) Subscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	objects, cancel = h.Controller.Subscribe(kinds, handler)
	h.before()
	return objects, cancel
}

// TestSubscribe: the handler gets the existing objects first, and nothing after cancel, from a cache with
// and without batches. A handler may cause changes while it gets the objects.
func TestSubscribe(t *testing.T) {
	for name, wrap := range map[string]func(c *memory.Controller, before func()) configstore.ConfigStoreCache{
		"a subscriber": func(c *memory.Controller, before func()) configstore.ConfigStoreCache { return hasty{c, before} },
		"another cache": func(c *memory.Controller, before func()) configstore.ConfigStoreCache {
			before()
			return struct{ configstore.ConfigStoreCache }{c}
		},
	} {
		cache, create := newCache(t)
		create("a")
		var got []string
		cancel := configfeed.Subscribe(wrap(cache, func() {
			create("b")
			cache.Drain()
		}), []configstore.GroupVersionKind{limitKind()}, func(changes []configstore.Change) {
			for _, c := range changes {
				if got = append(got, c.Event.String()+" "+c.Curr.Name); c.Curr.Name == "a" {
					create("c")
					cache.Drain()
				}
			}
		})
		cache.Drain()
		create("d")
		cache.Drain()
		cancel()
		cancel()
		create("e")
		cache.Drain()
		if want := []string{"add a", "add b", "add c", "add d"}; !slices.Equal(got, want) {
			t.Errorf("%s: the handler got %q, want %q", name, got, want)
		}
	}
}
