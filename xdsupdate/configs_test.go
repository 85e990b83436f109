// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func limitKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
}

// events is a cache that is no Subscriber. late is one that delivers a deletion while it is listed.
type (
	events struct{ configstore.ConfigStoreCache }
	late   struct {
		events
		deletion func()
	}
)

func (l late) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	list := l.events.List(kind, namespace)
	l.deletion()
	return list
}

// followed is a Pusher that follows the configs of a cache.
type followed struct {
	*testing.T
	cache   *memory.Controller
	pusher  *xdsupdate.Pusher
	configs *xdsupdate.Configs
	root    *xdsupdate.Root // of the last push
	seen    *xdsupdate.Root // that take has seen
	pushes  int
}

func newFollowed(t *testing.T) *followed {
	t.Helper()
	f := &followed{T: t, cache: memory.NewController(memory.Make(configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: limitKind(), Spec: &structpb.Value{}}).Build()))}
	f.pusher = xdsupdate.NewPusher(func(*xdsupdate.PushRequest) { f.pushes++ }, xdsupdate.PusherOptions{
		Capture: func(_ *xdsupdate.PushRequest, root *xdsupdate.Root) bool {
			f.root = root
			return true
		},
	})
	return f
}

func (f *followed) set(object string, value float64) {
	f.Helper()
	if _, err := configstore.Upsert(f.cache, configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: limitKind(), Namespace: "default", Name: object}, Spec: structpb.NewNumberValue(value),
	}); err != nil {
		f.Fatal(err)
	}
}

func (f *followed) remove(object string) {
	f.Helper()
	if err := f.cache.Delete(limitKind(), object, "default", nil); err != nil {
		f.Fatal(err)
	}
}

// took compares the configs that have changed since the last call: their values, -1 for deleted ones.
func (f *followed) took(want map[string]float64) {
	f.Helper()
	f.cache.Drain()
	if err := f.pusher.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
	got := map[string]float64{}
	for key, c := range f.root.ConfigsSince(f.seen, f.configs) {
		if got[key.Name] = -1; c != nil {
			got[key.Name] = c.Spec.(*structpb.Value).GetNumberValue()
		}
	}
	f.seen = f.root
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("took (-want +got):\n%s", diff)
	}
}

// TestFollowConfigs: roots have the last state of the configs of a cache, whatever its abilities.
func TestFollowConfigs(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*memory.Controller) configstore.ConfigStoreCache{
		"batches": func(c *memory.Controller) configstore.ConfigStoreCache { return c },
		"events":  func(c *memory.Controller) configstore.ConfigStoreCache { return events{c} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollowed(t)
			f.set("a", 1)
			f.set("b", 1)
			f.cache.Drain()
			f.configs = xdsupdate.FollowConfigs(f.pusher, wrap(f.cache), []configstore.GroupVersionKind{limitKind()},
				func(_, curr *configstore.Config) bool { return curr.Spec.(*structpb.Value).GetNumberValue() == 99 })
			f.set("b", 2)
			f.took(map[string]float64{"a": 1, "b": 2})
			f.took(map[string]float64{})
			f.set("a", 3)
			f.set("a", 4)
			f.remove("b")
			f.took(map[string]float64{"a": 4, "b": -1})
			before := f.pushes
			f.set("a", 99) // the same for every reader
			f.took(map[string]float64{})
			if f.pushes != before {
				t.Error("an ignored update was pushed")
			}
			f.configs.Close()
			f.set("a", 5)
			f.took(map[string]float64{})
		})
	}
}

// TestFollowLateList: an object that is deleted while the cache is listed does not come back.
func TestFollowLateList(t *testing.T) {
	f := newFollowed(t)
	f.set("a", 1)
	f.set("b", 1)
	f.cache.Drain()
	f.configs = xdsupdate.FollowConfigs(f.pusher, late{events{f.cache}, func() {
		f.remove("b")
		f.cache.Drain()
	}}, []configstore.GroupVersionKind{limitKind()}, nil)
	f.took(map[string]float64{"a": 1})
}
