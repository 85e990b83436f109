// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// subscribed is a registry that counts its subscriptions.
type subscribed struct {
	*memory.Registry
	live int
	// subscribing is called before the next subscription, cancelling before the next
	// end of one.
	subscribing, cancelling func()
}

func (s *subscribed) count(f *func(), cancel func()) (counted func()) {
	s.live++
	return func() {
		call(f)
		cancel()
		s.live--
	}
}

// call calls a function, if there is one, once.
func call(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

func (s *subscribed) SubscribeServices(h registry.ServiceHandler) (cancel func()) {
	call(&s.subscribing)
	return s.count(&s.cancelling, s.Registry.SubscribeServices(h))
}

func (s *subscribed) SubscribeWorkloads(h registry.WorkloadHandler) (cancel func()) {
	return s.count(&s.cancelling, s.Registry.SubscribeWorkloads(h))
}

func (s *subscribed) SubscribeNetworkGateways(h func()) (cancel func()) {
	return s.count(&s.cancelling, s.Registry.SubscribeNetworkGateways(h))
}

// A registry that has left keeps no subscription of the aggregate, however it left.
func TestSubscriptionsEndWithTheRegistry(t *testing.T) {
	for name, leave := range map[string]func(c *aggregate.Controller){
		"deleted":  func(c *aggregate.Controller) { c.DeleteRegistry("c1", "Mock") },
		"replaced": func(c *aggregate.Controller) { c.UpdateRegistry(given(newRegistry("Mock", "c1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			c := aggregate.NewController()
			c.AppendWorkloadHandler(func(*registry.WorkloadInstance, registry.Event) {})
			r := &subscribed{Registry: newRegistry("Mock", "c1")}
			c.AddRegistry(given(r))
			expect(t, "subscriptions", r.live, 3)
			leave(c)
			expect(t, "subscriptions after the end", r.live, 0)
		})
		t.Run(name+" while it is added", func(t *testing.T) {
			c := aggregate.NewController()
			r := &subscribed{Registry: newRegistry("Mock", "c1")}
			r.subscribing = func() { leave(c) }
			c.AddRegistry(given(r))
			expect(t, "subscriptions", r.live, 0)
		})
	}
}

// What a registry still sends while its subscriptions end comes after its end.
func TestEventsAmidTheEndAreDropped(t *testing.T) {
	c := aggregate.NewController()
	var services, workloads, gateways eventLog
	c.AppendServiceHandler(services.service)
	c.AppendWorkloadHandler(workloads.workload)
	c.AppendNetworkGatewayHandler(func() { gateways.add("gateways") })
	r := &subscribed{Registry: newRegistry("Mock", "c1")}
	c.AddRegistry(given(r))
	set(t, r.Registry, service("a", "ns"))
	services.expect(t, "add a 0.0.0.0")
	r.cancelling = func() {
		set(t, r.Registry, service("late", "ns"))
		if err := r.SetWorkload(pod("late=1.1.1.1")); err != nil {
			t.Error(err)
		}
	}
	c.DeleteRegistry("c1", "Mock")
	services.expect(t, "delete a 0.0.0.0")
	workloads.expect(t)
	gateways.expect(t)
}

// Gateway handlers are called when the gateways change, not when a registry comes or
// goes.
func TestGatewayHandlersAreCalledForChanges(t *testing.T) {
	with := func(addresses ...string) *memory.Registry {
		r := newRegistry("Mock", "c1")
		var gateways []registry.NetworkGateway
		for _, address := range addresses {
			gateways = append(gateways, registry.NetworkGateway{Network: "n", Addr: address, Port: 1})
		}
		r.SetNetworkGateways(gateways)
		return r
	}
	c := aggregate.NewController()
	var gateways eventLog
	c.AppendNetworkGatewayHandler(func() { gateways.add("changed") })
	c.AddRegistry(given(with()))
	c.UpdateRegistry(given(with()))
	gateways.expect(t)
	c.UpdateRegistry(given(with("1.1.1.1", "2.2.2.2")))
	gateways.expect(t, "changed")
	c.UpdateRegistry(given(with("2.2.2.2", "1.1.1.1")))
	gateways.expect(t)
	c.DeleteRegistry("c1", "Mock")
	gateways.expect(t, "changed")
}

// A registry that left while it was added is not run.
func TestRegistryThatLeftIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := aggregate.NewController()
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			c.Run(stop)
		}()
		synctest.Wait()
		var notes eventLog
		r := &subscribed{Registry: newRegistry("Mock", "c1")}
		r.subscribing = func() { c.DeleteRegistry("c1", "Mock") }
		c.AddRegistryAndRun(given(runner{r, &notes}), nil)
		close(stop)
		<-ended
		notes.expect(t)
	})
}

// runner notes that it is run.
type runner struct {
	*subscribed
	notes *eventLog
}

func (r runner) Run(<-chan struct{}) { r.notes.add("run") }
