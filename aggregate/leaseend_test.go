// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// Whatever a registry that has left still sends is dropped, also what is for no shard
// or for one that it has never written to.
func TestLeaseEndsWithItsRegistry(t *testing.T) {
	for name, leave := range map[string]func(c *aggregate.Controller){
		"deleted": func(c *aggregate.Controller) { c.DeleteRegistry("c1", registry.Memory) },
		"replaced": func(c *aggregate.Controller) {
			c.UpdateRegistry(func(xdsupdate.XDSUpdater) registry.Instance { return newRegistry(registry.Memory, "c1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var recorder xdstest.Recorder
			c := aggregate.NewController(aggregate.Options{Updater: &recorder})
			var updater xdsupdate.XDSUpdater
			c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				updater = u
				return newRegistry(registry.Memory, "c1")
			})
			send := func() {
				updater.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
				updater.ProxyUpdate("c1", "10.0.0.1")
				updater.EDSUpdate(xdsupdate.ShardKey{Cluster: "other"}, "a", "ns", []*registry.Endpoint{endpointOn("1.1.1.1")})
			}
			updater.ProxyUpdate("c1", "10.0.0.1")
			if got := len(recorder.Take()); got != 1 {
				t.Fatalf("%d calls before, want 1", got)
			}
			leave(c)
			recorder.Take()
			send()
			recorder.Expect(t)
		})
	}
}

// A shard whose registry has left is free: also an older registry may write to it.
func TestShardOfADeletedRegistryIsFree(t *testing.T) {
	withUpdaters(t, func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater) {
		t.Helper()
		c := aggregate.NewController(aggregate.Options{Updater: updater})
		var older xdsupdate.XDSUpdater
		c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			older = u
			return newRegistry(registry.Memory, "older")
		})
		c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			r := memory.New(memory.Options{Cluster: "c1", Updater: u})
			fill(t, r, "1.1.1.1")
			return r
		})
		shard := xdsupdate.ShardKey{Cluster: "c1", Provider: registry.Memory}
		older.EDSUpdate(shard, "a", "ns", []*registry.Endpoint{endpointOn("2.2.2.2")})
		expect(t, "endpoints while the younger one is there", indexed(pusher, "a", "ns"), "1.1.1.1")
		c.DeleteRegistry("c1", registry.Memory)
		expect(t, "endpoints after the deletion", indexed(pusher, "a", "ns"), "")
		older.EDSUpdate(shard, "a", "ns", []*registry.Endpoint{endpointOn("2.2.2.2")})
		expect(t, "endpoints of the older one", indexed(pusher, "a", "ns"), "2.2.2.2")
	})
}
