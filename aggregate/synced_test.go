// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// member is a cache that says itself whether it has synced.
type member struct {
	configstore.ConfigStoreCache
	configstore.Watcher
	synced bool
}

func (m *member) HasSynced() bool { return m.synced }

// Drain is enough for it, also without handlers.
func TestCacheHasSyncedWithoutHandlers(t *testing.T) {
	c := aggregate.MakeCache(memory.NewController(memory.Make(schemas("A"))))
	if c.HasSynced() {
		t.Error("HasSynced = true before anything was delivered")
	}
	if c.Drain(); !c.HasSynced() {
		t.Error("HasSynced = false after Drain")
	}
}

// HasSynced waits for every member, and until handlers have what the members show
// then, though they have delivered nothing of it.
func TestCacheHasSynced(t *testing.T) {
	one, two := memory.NewController(memory.Make(schemas("A"))), memory.NewController(memory.Make(schemas("A")))
	first, second := &member{one, one, true}, &member{two, two, false}
	c := aggregate.MakeCache(first, second)
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	c.Drain()
	if c.HasSynced() {
		t.Error("HasSynced = true with a member that has not")
	}
	create(t, two, object("A", "ns", "x", "1"))
	second.synced = true
	if c.HasSynced() {
		t.Error("HasSynced = true before a handler has what the member shows")
	}
	c.Drain()
	r.Expect(t, "add A ns/x")
	if !c.HasSynced() {
		t.Error("HasSynced = false when handlers have everything")
	}
}
