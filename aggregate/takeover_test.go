// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// A registry owns its shard until it is replaced, although its successor has written before. Afterwards it
// can neither write to it nor remove it.
func TestSuccessorTakesTheShardByJoining(t *testing.T) {
	withUpdaters(t, func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater) {
		t.Helper()
		c := aggregate.NewController(aggregate.Options{Updater: updater})
		var first *memory.Registry
		var lease xdsupdate.XDSUpdater
		c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			first, lease = memory.New(memory.Options{Updater: u}), u
			fill(t, first, "1.1.1.1")
			return first
		})
		c.UpdateRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
			r := memory.New(memory.Options{Updater: u})
			fill(t, r, "2.2.2.2")
			expect(t, "endpoints after a write of the successor", indexed(pusher, "a", "ns"), "1.1.1.1")
			fill(t, first, "1.1.1.9")
			expect(t, "endpoints after a write of the predecessor", indexed(pusher, "a", "ns"), "1.1.1.9")
			return r
		})
		expect(t, "endpoints of the successor", indexed(pusher, "a", "ns"), "2.2.2.2")
		fill(t, first, "1.1.1.10")
		expect(t, "endpoints after a late write", indexed(pusher, "a", "ns"), "2.2.2.2")
		lease.RemoveShard(xdsupdate.ShardKeyOf(first))
		expect(t, "endpoints after a late removal", indexed(pusher, "a", "ns"), "2.2.2.2")
	})
}

// A successor is made to empty the services that its predecessors have left, not those
// that they have deleted, nor those of others that it has written to.
func TestWhatAPredecessorDeletedIsNotEmptied(t *testing.T) {
	var recorder xdstest.Recorder
	c := aggregate.NewController(aggregate.Options{Updater: unclaimable{&recorder}})
	shard := xdsupdate.ShardKey{Cluster: "c1", Provider: registry.Memory}
	writer := func(write func(u xdsupdate.XDSUpdater)) func(u xdsupdate.XDSUpdater) registry.Instance {
		return func(u xdsupdate.XDSUpdater) registry.Instance {
			write(u)
			return newRegistry(registry.Memory, "c1")
		}
	}
	endpoints := []*registry.Endpoint{endpointOn("1.1.1.1")}
	c.AddRegistry(writer(func(u xdsupdate.XDSUpdater) {
		for _, host := range []registry.Hostname{"deleted", "kept", "left", "left-longer"} {
			u.EDSUpdate(shard, host, "ns", endpoints)
		}
		u.SvcUpdate(shard, "deleted", "ns", registry.EventDelete)
	}))
	unsynced := memory.New(memory.Options{Provider: registry.Memory, Cluster: "c1", HasSynced: func() bool { return false }})
	c.UpdateRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		u.EDSUpdate(shard, "left", "ns", endpoints)
		return unsynced
	})
	recorder.Take()
	c.UpdateRegistry(writer(func(u xdsupdate.XDSUpdater) { u.EDSUpdate(shard, "kept", "ns", endpoints) }))
	var emptied []string
	for _, call := range recorder.Take() {
		if call.Kind == "EDSUpdate" && len(call.Endpoints) == 0 {
			emptied = append(emptied, string(call.Hostname))
		}
	}
	expect(t, "emptied", emptied, []string{"left", "left-longer"})
}

// A shard to which a present registry has written stays when another one that had
// written to it leaves.
func TestShardTakenOverFromARegistryStays(t *testing.T) {
	withUpdaters(t, func(t *testing.T, pusher *xdsupdate.Pusher, updater xdsupdate.XDSUpdater) {
		t.Helper()
		c := aggregate.NewController(aggregate.Options{Updater: updater})
		shard := xdsupdate.ShardKey{Cluster: "third", Provider: registry.Memory}
		for i, cluster := range []registry.ClusterID{"first", "second"} {
			c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
				u.EDSUpdate(shard, "a", "ns", []*registry.Endpoint{endpointOn([]string{"1.1.1.1", "2.2.2.2"}[i])})
				return newRegistry(registry.Memory, cluster)
			})
		}
		expect(t, "endpoints", indexed(pusher, "a", "ns"), "2.2.2.2")
		c.DeleteRegistry("first", registry.Memory)
		expect(t, "endpoints after the first has left", indexed(pusher, "a", "ns"), "2.2.2.2")
		c.DeleteRegistry("second", registry.Memory)
		expect(t, "endpoints after both have left", indexed(pusher, "a", "ns"), "")
	})
}

// slow is an updater of which a call takes until leave is closed.
type slow struct {
	xdsupdate.Discard
	entered, leave chan struct{}
}

func (s slow) EDSUpdate(xdsupdate.ShardKey, registry.Hostname, string, []*registry.Endpoint) {
	s.entered <- struct{}{}
	<-s.leave
}

// A call of a registry that is in progress when the registry is replaced has no effect
// on a Pusher, whatever other updaters there are.
func TestCallInProgressBesideASlowUpdater(t *testing.T) {
	first := slow{entered: make(chan struct{}), leave: make(chan struct{})}
	c := aggregate.NewController(aggregate.Options{Updater: first})
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	c.AttachUpdater(pusher)
	shard := xdsupdate.ShardKey{Cluster: "c1", Provider: registry.Memory}
	var late sync.WaitGroup
	var updater xdsupdate.XDSUpdater
	c.AddRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		updater = u
		return newRegistry(registry.Memory, "c1")
	})
	late.Go(func() { updater.EDSUpdate(shard, "a", "ns", []*registry.Endpoint{endpointOn("1.1.1.1")}) })
	<-first.entered
	c.UpdateRegistry(func(u xdsupdate.XDSUpdater) registry.Instance {
		u.EDSCacheUpdate(shard, "a", "ns", []*registry.Endpoint{endpointOn("2.2.2.2")})
		return newRegistry(registry.Memory, "c1")
	})
	close(first.leave)
	late.Wait()
	expect(t, "endpoints after the late call", indexed(pusher, "a", "ns"), "2.2.2.2")
}

// What a registry that has its updater from its program writes of a service takes the
// place of what its predecessor has written, also if it could write changes only.
func TestDirectSuccessorReplacesEndpoints(t *testing.T) {
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	c := aggregate.NewController(aggregate.Options{Updater: pusher})
	first := memory.New(memory.Options{Updater: pusher})
	fill(t, first, "1.1.1.1", "1.1.1.2", "1.1.1.3")
	c.AddRegistry(given(first))
	expect(t, "endpoints", indexed(pusher, "a", "ns"), "1.1.1.1 1.1.1.2 1.1.1.3")
	next := memory.New(memory.Options{Updater: pusher})
	fill(t, next, "2.2.2.2")
	c.UpdateRegistry(given(next))
	expect(t, "endpoints of the successor", indexed(pusher, "a", "ns"), "2.2.2.2")
}
