// SPDX-License-Identifier: Apache-2.0

package configfeed_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/configfeed"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func limit() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
}

// batch is a cache that cannot list and subscribe at one moment, single one that has no batches either,
// events one that has handlers for good only.
type (
	events struct{ configstore.ConfigStoreCache }
	single struct {
		events
		configstore.Subscriber
	}
	batch struct {
		events
		configstore.BatchSubscriber
	}
)

// TestFeed: changes are taken once, in their last state, from caches of all abilities.
func TestFeed(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*memory.Controller) configstore.ConfigStoreCache{
		"lists":   func(c *memory.Controller) configstore.ConfigStoreCache { return c },
		"batches": func(c *memory.Controller) configstore.ConfigStoreCache { return batch{events{c}, c} },
		"single":  func(c *memory.Controller) configstore.ConfigStoreCache { return single{events{c}, c} },
		"events":  func(c *memory.Controller) configstore.ConfigStoreCache { return events{c} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := memory.NewController(memory.Make(configstore.NewSchemasBuilder().
				MustAdd(configstore.Schema{GroupVersionKind: limit(), Spec: &structpb.Value{}}).Build()))
			set := func(object string, value float64) {
				t.Helper()
				if _, err := configstore.Upsert(cache, configstore.Config{
					Meta: configstore.Meta{GroupVersionKind: limit(), Namespace: "default", Name: object}, Spec: structpb.NewNumberValue(value),
				}); err != nil {
					t.Fatal(err)
				}
			}
			set("a", 1)
			set("b", 1)
			cache.Drain()
			f, notified := configfeed.New(wrap(cache), []configstore.GroupVersionKind{limit()}), 0
			f.Notify = func(keys map[configstore.ConfigKey]struct{}) { notified += len(keys) }
			f.Same = func(_, curr *configstore.Config) bool { return curr.Spec.(*structpb.Value).GetNumberValue() == 99 }
			took := func(want map[string]float64) {
				t.Helper()
				cache.Drain()
				got := map[string]float64{}
				for key, c := range f.Take() {
					if got[key.Name] = -1; c != nil {
						got[key.Name] = c.Spec.(*structpb.Value).GetNumberValue()
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("took (-want +got):\n%s", diff)
				}
			}
			listed := f.Subscribe()
			if listed != (name == "lists") {
				t.Errorf("listed: %v", listed)
			}
			set("b", 2)
			cache.Drain()
			if !listed {
				f.List()
			}
			took(map[string]float64{"a": 1, "b": 2})
			took(map[string]float64{})
			set("a", 3)
			set("a", 4)
			if err := cache.Delete(limit(), "b", "default", nil); err != nil {
				t.Fatal(err)
			}
			took(map[string]float64{"a": 4, "b": -1})
			before := notified
			set("a", 99) // the same for every reader
			took(map[string]float64{})
			if notified != before {
				t.Error("what concerns nobody was notified")
			}
			f.Stop()
			set("a", 5)
			want := map[string]float64{}
			if name == "events" {
				want["a"] = 5 // its handlers stay
			}
			took(want)
			if kinds := slices.Collect(maps.Keys(f.Take())); len(kinds) > 0 {
				t.Errorf("%v is left", kinds)
			}
		})
	}
}
