// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"maps"
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
	notes *eventLog
}

func (r running) Run(stop <-chan struct{}) {
	r.notes.add("run " + r.name)
	<-stop
	r.notes.add("end " + r.name)
}

func TestRunOwnsWhatItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes eventLog
		named := func(name string) running { return running{newRegistry("Mock", registry.ClusterID(name)), name, &notes} }
		c := aggregate.NewController(aggregate.Options{})
		own, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		c.AddRegistry(given(named("before")))
		c.AddRegistryAndRun(given(named("own")), own)
		synctest.Wait()
		notes.expect(t)
		go func() {
			defer close(ended)
			c.Run(stop)
		}()
		synctest.Wait()
		slices.Sort(notes.lines)
		notes.expect(t, "run before", "run own")
		c.AddRegistry(given(named("late")))
		synctest.Wait()
		notes.expect(t, "run late")
		c.AddRegistryAndRun(given(named("started")), nil)
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
		slices.Sort(notes.lines)
		notes.expect(t, "end before", "end late")
		c.AddRegistryAndRun(given(named("too late")), nil)
		synctest.Wait()
		notes.expect(t)
		c.Run(stop)
	})
}

func TestReplacementOfWorkloads(t *testing.T) {
	filled := func(workloads map[string]string) *memory.Registry {
		r := newRegistry(registry.Kubernetes, "c1")
		for _, name := range slices.Sorted(maps.Keys(workloads)) {
			w := &registry.WorkloadInstance{Namespace: "ns", Name: name, Endpoint: &registry.Endpoint{Addresses: []string{workloads[name]}}}
			if err := r.SetWorkload(w); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	c := aggregate.NewController(aggregate.Options{})
	c.AddRegistry(given(filled(map[string]string{"changed": "1.1.1.1", "gone": "2.2.2.2", "same": "3.3.3.3"})))
	var h eventLog
	cancel := c.SubscribeWorkloads(h.workload)
	h.expect(t, "add changed", "add gone", "add same")
	c.UpdateRegistry(given(filled(map[string]string{"changed": "1.1.1.9", "new": "4.4.4.4", "same": "3.3.3.3"})))
	h.expect(t, "update changed", "add new", "delete gone")
	cancel()
	c.DeleteRegistry("c1", registry.Kubernetes)
	h.expect(t)
}

func TestInstancesOfAllRegistriesAreSorted(t *testing.T) {
	c := aggregate.NewController(aggregate.Options{})
	var last *memory.Registry
	for cluster, address := range map[registry.ClusterID]string{"c1": "10.0.0.2", "c2": "10.0.0.3", "c3": "10.0.0.1", "c4": ""} {
		last = newRegistry(registry.Kubernetes, cluster)
		set(t, last, service("a", "ns"))
		if address != "" {
			e := &registry.Endpoint{Addresses: []string{address}, EndpointPort: 80, ServicePort: 80, ServicePortName: "http"}
			if err := last.AddEndpoint("a", "ns", e); err != nil {
				t.Fatal(err)
			}
		}
		c.AddRegistry(given(last))
	}
	var got []string
	for _, i := range c.InstancesByPort(c.GetService("a"), 80) {
		got = append(got, i.Endpoint.Address())
	}
	expect(t, "addresses", strings.Join(got, " "), "10.0.0.1 10.0.0.2 10.0.0.3")
	expect(t, "instances of another port", len(c.InstancesByPort(c.GetService("a"), 81)), 0)
}

// What a registry answers with is its own: it is not appended to.
func TestAnswersOfRegistriesAreNotChanged(t *testing.T) {
	one, two := &stub{cluster: "c1"}, &stub{cluster: "c2"}
	for i, s := range []*stub{one, two} {
		s.targets = append(make([]*registry.ServiceInstance, 0, 4), &registry.ServiceInstance{Endpoint: endpointOn([]string{"1.1.1.1", "2.2.2.2"}[i])})
	}
	c := aggregate.NewController()
	c.AddRegistry(given(one))
	c.AddRegistry(given(two))
	expect(t, "instances", len(c.GetProxyServiceInstances(&registry.Proxy{})), 2)
	if one.targets[:2][1] != nil {
		t.Error("the aggregate has written behind the end of a registry's slice")
	}
}

func TestHasSyncedAsksAll(t *testing.T) {
	c := aggregate.NewController(aggregate.Options{})
	if !c.HasSynced() {
		t.Error("HasSynced() = false without registries")
	}
	synced := false
	c.AddRegistry(given(newRegistry(registry.External, "c1")))
	c.AddRegistry(given(memory.New(memory.Options{HasSynced: func() bool { return synced }})))
	if c.HasSynced() {
		t.Error("HasSynced() = true with a registry that has not")
	}
	if synced = true; !c.HasSynced() {
		t.Error("HasSynced() = false with all registries in sync")
	}
}

// asked counts how often it is asked whether it has synced, which it never has.
type asked struct {
	*memory.Registry
	times int
}

func (a *asked) HasSynced() bool {
	a.times++
	return false
}

// A registry that has left is not asked any more, though it never synced.
func TestRegistryThatLeftIsNotAsked(t *testing.T) {
	var r *asked
	c := aggregate.NewController(aggregate.Options{Updater: xdsupdate.Discard{}})
	c.AddRegistry(given(newRegistry("Mock", "c1")))
	c.UpdateRegistry(func(xdsupdate.XDSUpdater) registry.Instance {
		r = &asked{Registry: newRegistry("Mock", "c1")}
		return r
	})
	c.DeleteRegistry("c1", "Mock")
	c.HasSynced()
	before := r.times
	c.HasSynced()
	expect(t, "times that it was asked", r.times-before, 0)
}

func TestShardOfTwoRegistriesStays(t *testing.T) {
	index := &updater{}
	c := aggregate.NewController(aggregate.Options{Updater: index})
	for range 3 {
		c.AddRegistry(given(newRegistry(registry.External, "c1")))
	}
	for _, want := range []int{0, 0, 1} {
		if !c.DeleteRegistry("c1", registry.External) {
			t.Error("DeleteRegistry = false for a registry that is there")
		}
		expect(t, "removed", len(index.removed), want)
	}
	if c.DeleteRegistry("c1", registry.External) {
		t.Error("DeleteRegistry = true without a registry")
	}
}
