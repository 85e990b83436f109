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

// A member that only tells its events is as fresh as they are, and it is told no
// more when Run has ended.
func TestCacheOfPlainCachesKeepsItsPromises(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		one, two := newMember(schemas), newMember(schemas)
		c := aggregate.MakeWriteableCache([]configstore.ConfigStoreCache{plain{one}, plain{two}}, two)
		settle := func() {
			for _, m := range []*memory.Controller{one, two} {
				m.Drain()
				_ = m.Flush(t.Context())
			}
		}
		return storetest.Subject{Store: c, Settle: settle}
	}
	storetest.TestStore(t, factory)
}
