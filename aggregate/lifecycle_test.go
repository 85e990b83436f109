// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// running notes its life.
type running struct {
	*memory.Registry
	name  string
	notes *told
}

func (r running) Run(stop <-chan struct{}) {
	r.notes.add("run " + r.name)
	<-stop
	r.notes.add("end " + r.name)
}

func TestRunOwnsWhatItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes told
		named := func(name string) running { return running{newRegistry("Mock", registry.ClusterID(name)), name, &notes} }
		c := aggregate.NewController(aggregate.Options{})
		own, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		c.AddRegistry(named("before"))
		c.AddRegistryAndRun(named("own"), own)
		synctest.Wait()
		notes.expect(t)
		go func() {
			defer close(ended)
			c.Run(stop)
		}()
		synctest.Wait()
		slices.Sort(notes.lines)
		notes.expect(t, "run before", "run own")
		c.AddRegistry(named("late")) // its host runs it
		c.AddRegistryAndRun(named("started"), nil)
		synctest.Wait()
		notes.expect(t, "run started")
		close(own)
		synctest.Wait()
		notes.expect(t, "end own")
		c.DeleteRegistry("started", "Mock")
		synctest.Wait()
		notes.expect(t, "end started")
		defer func() {
			if recover() == nil {
				t.Error("a second Run returned")
			}
		}()
		close(stop)
		<-ended
		notes.expect(t, "end before")
		c.AddRegistryAndRun(named("too late"), nil)
		synctest.Wait()
		notes.expect(t)
		c.Run(stop)
	})
}

// A registry that was deleted or replaced may still be at work. What it sends to
// the updater that it had must not reach the shard.
func TestLateWritesOfAReplacedRegistryAreIgnored(t *testing.T) {
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{})
	shard := xdsupdate.ShardKey{Cluster: "c1", Provider: registry.Kubernetes}
	claimed := func() aggregate.Claimed {
		u := pusher.Claim(shard)
		return aggregate.Claimed{
			Instance: memory.New(memory.Options{Provider: registry.Kubernetes, Cluster: "c1", Updater: u}), Updater: u,
		}
	}
	fill := func(r aggregate.Claimed, address string) {
		m, ok := r.Instance.(*memory.Registry)
		if !ok {
			t.Fatal("not a memory registry")
		}
		set(t, m, service("a", "ns"))
		e := &registry.Endpoint{Addresses: []string{address}, EndpointPort: 80, ServicePort: 80, ServicePortName: "http"}
		if err := m.SetEndpoints("a", "ns", []*registry.Endpoint{e}); err != nil {
			t.Fatal(err)
		}
	}
	addresses := func() string { return indexed(pusher, "a", "ns") }
	c := aggregate.NewController(aggregate.Options{Updater: pusher})
	first := claimed()
	c.AddRegistry(first)
	fill(first, "1.1.1.1")
	expect(t, "endpoints", addresses(), "1.1.1.1")
	second := claimed()
	fill(second, "2.2.2.2")
	c.UpdateRegistry(second)
	fill(first, "1.1.1.9")
	expect(t, "endpoints after a late write of the predecessor", addresses(), "2.2.2.2")
	if c.DeleteRegistryIfCurrent(first) || !c.DeleteRegistryIfCurrent(second) {
		t.Error("DeleteRegistryIfCurrent deletes what is not current")
	}
	expect(t, "endpoints after the deletion", addresses(), "")
	fill(second, "2.2.2.9")
	expect(t, "endpoints after a late write of the deleted registry", addresses(), "")
}

// indexed returns the addresses that the index has for a service.
func indexed(pusher *xdsupdate.Pusher, hostname, namespace string) string {
	service := pusher.Index().Service(hostname, namespace)
	if service == nil {
		return ""
	}
	var out []string
	for e := range service.All() {
		out = append(out, e.Address())
	}
	return strings.Join(out, " ")
}
