// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// TestCoarseTimes: a store that keeps times in seconds has the source's objects all the
// same.
func TestCoarseTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := coarse{newStore()}
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		c := entry("default", "a")
		c.CreationTimestamp = time.Unix(1700000000, 5)
		d.say("1", encoded(t, c))
		c.Labels = map[string]string{"a": "b"}
		d.say("2", encoded(t, c))
		synctest.Wait()
		if got := store.Get(istio.ServiceEntry, "a", "default"); got == nil || got.Labels["a"] != "b" || len(source.Report().Errors) > 0 {
			t.Errorf("stored %v, report %v", got, messages(source))
		}
		d.say("3")
		if got := names(store); got != "" {
			t.Errorf("the store has %q", got)
		}
	})
}

// coarse is a store that keeps times in seconds.
type coarse struct{ *memory.Store }

func (s coarse) Apply(mutations ...configstore.Mutation) (uint64, error) {
	for i := range mutations {
		c := &mutations[i].Config
		c.CreationTimestamp = c.CreationTimestamp.Truncate(time.Second)
	}
	return s.Store.Apply(mutations...)
}

// TestForgotten: no state is kept for deleted objects.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: newStore()}
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		d.open(1)
		d.say("1", entries(t, "a", "c")...)
		store.set("panic")
		d.say("2", append(entries(t, "b"), encoded(t, entry("default", "c", "new.example.com")))...)
		d.say("3", entries(t, "b")...)
		store.set(nil)
		time.Sleep(15 * time.Second)
		d.say("4")
		end()
		if k := source.kinds[0]; len(k.objects) > 0 || len(k.refused)+len(k.changed)+len(source.errs) > 0 || k.written != 0 || source.refused {
			t.Errorf("%d objects, %d refused, %d changed, %d errors, %d written, refused: %v",
				len(k.objects), len(k.refused), len(k.changed), len(source.errs), k.written, source.refused)
		}
		if got := names(store); got != "" {
			t.Errorf("the store has %q", got)
		}
	})
}
