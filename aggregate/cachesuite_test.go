// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

func newMember(schemas configstore.Schemas) *memory.Controller {
	return memory.NewController(memory.Make(schemas, memory.Options{DetectMutations: true, HistoryLimit: 50}))
}

// plain hides all that a cache can do beyond its interface.
type plain struct{ configstore.ConfigStoreCache }

func TestWriteableCacheKeepsItsPromises(t *testing.T) {
	for name, position := range map[string]int{"first": 0, "last": 2} {
		t.Run(name, func(t *testing.T) {
			factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
				members := []*memory.Controller{newMember(schemas), newMember(schemas), newMember(schemas)}
				w := members[position]
				c := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{members[0], members[1], members[2]}, w)
				return storetest.Subject{Store: c, Batches: w}
			}
			storetest.TestStore(t, factory)
			storetest.TestCache(t, factory)
		})
	}
}

func TestReadOnlyCacheKeepsItsPromises(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		w := newMember(schemas)
		return storetest.Subject{Store: aggregate.MakeCache(newMember(schemas), w), Writer: w}
	}
	storetest.TestStore(t, factory)
	storetest.TestCache(t, factory)
}

// transparent shows what it wraps, as package configstore has wrappers do.
type transparent struct{ configstore.ConfigStoreCache }

func (w transparent) Unwrap() configstore.ConfigStore { return w.ConfigStoreCache }

// A wrapper takes nothing from its cache: reads are as fresh as without it.
func TestCacheOfWrappedCachesKeepsItsPromises(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		one, two := newMember(schemas), newMember(schemas)
		c := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{transparent{one}, transparent{transparent{two}}}, two)
		return storetest.Subject{Store: transparent{c}}
	}
	storetest.TestStore(t, factory)
	storetest.TestCache(t, factory)
}

// Without events, reads show what a wrapped cache has, and not what a cache has
// that can do nothing beyond its interface.
func TestFreshnessOfWrappedMembers(t *testing.T) {
	for name, tt := range map[string]struct {
		wrap  func(*memory.Controller) configstore.ConfigStoreCache
		fresh bool
	}{
		"as it is":    {func(m *memory.Controller) configstore.ConfigStoreCache { return m }, true},
		"transparent": {func(m *memory.Controller) configstore.ConfigStoreCache { return transparent{m} }, true},
		"plain":       {func(m *memory.Controller) configstore.ConfigStoreCache { return plain{m} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(schemas("A"))
			c := aggregate.MakeCache(tt.wrap(m))
			if _, err := m.Create(object("A", "ns", "x", "1")); err != nil {
				t.Fatal(err)
			}
			if got := c.Get(kind("A"), "x", "ns") != nil; got != tt.fresh {
				t.Errorf("Get finds what was written: %t, want %t", got, tt.fresh)
			}
			if got := len(c.List(kind("A"), "ns")) == 1; got != tt.fresh {
				t.Errorf("List has what was written: %t, want %t", got, tt.fresh)
			}
			m.Drain()
			if c.Get(kind("A"), "x", "ns") == nil || len(c.List(kind("A"), "")) != 1 {
				t.Error("what was written is not seen after its event")
			}
		})
	}
}

// A member that has nothing but events is as fresh as they are, and gets none any
// more when Run has ended.
func TestCacheOfPlainCachesKeepsItsPromises(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		one, two := newMember(schemas), newMember(schemas)
		c := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{plain{one}, plain{two}}, two)
		catchUp := func() {
			for _, m := range []*memory.Controller{one, two} {
				m.Drain()
				_ = m.Flush(t.Context())
			}
		}
		return storetest.Subject{Store: c, CatchUp: catchUp}
	}
	storetest.TestStore(t, factory)
}
