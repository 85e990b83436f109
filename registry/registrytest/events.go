// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

const sourceServiceHandler = "registry.ServiceHandler"

func eventChecks() []check {
	return []check{
		{
			Name: "Events/Add", Source: sourceServiceHandler,
			Promise: "a new service is an add, with a nil prev",
			Run:     eventsAdd,
		},
		{
			Name: "Events/Update", Source: sourceServiceHandler,
			Promise: "a changed service is an update, with the one replaced",
			Run:     eventsUpdate,
		},
		{
			Name: "Events/Delete", Source: sourceServiceHandler,
			Promise: "a removed service is a delete, with a nil prev and the last known state",
			Run:     eventsDelete,
		},
		{
			Name: "Events/Nothing", Source: sourcePackage,
			Promise: "what changes no service causes no service event",
			Run:     eventsNothing,
		},
		{
			Name: "Events/Order", Source: sourcePackage,
			Promise: "changes are delivered in the order in which they were made, and none is dropped",
			Run:     eventsOrder,
		},
		{
			Name: "Events/Fresh", Source: sourcePackage,
			Promise: "when a handler runs, the registry's own reads show the new state",
			Run:     eventsFresh,
		},
		{
			Name: "Events/Whole", Source: sourcePackage,
			Promise: "a service and its endpoints change together: neither a reader nor a handler sees the one without the other",
			Skip:    isApart, Run: eventsWhole,
		},
	}
}

// expectCalls requires these events, with prev and curr according to the contract.
func (s *suite) expectCalls(r *recorder, want ...string) []call {
	s.Helper()
	calls := r.Take()
	got := texts(calls)
	if len(got) != len(want) {
		s.Stop("received %v, want %v", got, want)
	}
	for i, c := range calls {
		if got[i] != want[i] {
			s.Stop("received %v, want %v", got, want)
		}
		if c.Curr == nil {
			s.Stop("%s: curr is nil", got[i])
		}
		if (c.Prev != nil) != (c.Event == registry.EventUpdate) {
			s.Broken("%s: prev = %s", got[i], describe(c.Prev))
		}
	}
	return calls
}

func (s *suite) recorder() *recorder {
	r := &recorder{}
	s.reg.AppendServiceHandler(r.handle)
	s.catchUp()
	return r
}

func eventsAdd(s *suite) {
	r := s.recorder()
	s.set(bank())
	calls := s.expectCalls(r, "add money/bank.example.com")
	if got, want := describe(calls[0].Curr), describe(bank().service()); got != want {
		s.Broken("curr = %s, want %s", got, want)
	}
}

func eventsUpdate(s *suite) {
	s.set(bank())
	s.set(shop())
	r := s.recorder()
	s.expectCalls(r, "add money/bank.example.com", "add retail/shop.example.com")
	s.set(bank().onPorts(81))
	calls := s.expectCalls(r, "update money/bank.example.com")
	if got, want := describe(calls[0].Prev), describe(bank().service()); got != want {
		s.Broken("prev = %s, want %s", got, want)
	}
	if got, want := describe(calls[0].Curr), describe(bank().onPorts(81).service()); got != want {
		s.Broken("curr = %s, want %s", got, want)
	}
}

func eventsDelete(s *suite) {
	r := s.recorder()
	s.set(bank())
	s.set(bank().onPorts(81))
	s.remove(bank())
	calls := s.expectCalls(r, "add money/bank.example.com", "update money/bank.example.com", "delete money/bank.example.com")
	if got, want := describe(calls[2].Curr), describe(bank().onPorts(81).service()); got != want {
		s.Broken("curr = %s, want the last known state, %s", got, want)
	}
}

func eventsNothing(s *suite) {
	s.set(shop())
	r := s.recorder()
	r.Take()
	s.set(shop())
	s.expectCalls(r)
	s.set(shop().with("10.1.1.1", "10.1.1.2"))
	s.set(shop().with())
	s.expectCalls(r)
}

func eventsOrder(s *suite) {
	first, second := s.recorder(), s.recorder()
	var want []string
	for range 5 {
		s.subject.Set(shop().service(), shop().endpoints())
		s.subject.Set(bank().service(), bank().endpoints())
		s.subject.Remove(shop().hostname, shop().namespace)
		s.catchUp()
		s.subject.Remove(bank().hostname, bank().namespace)
		s.catchUp()
		want = append(want, "add retail/shop.example.com", "add money/bank.example.com",
			"delete retail/shop.example.com", "delete money/bank.example.com")
	}
	if s.subject.CatchUp != nil {
		// Pending changes may have been coalesced.
		s.consistent(first.Take())
		return
	}
	s.expectCalls(first, want...)
	s.expectCalls(second, want...)
}

// consistent requires that the events add up to the registry's content.
func (s *suite) consistent(calls []call) {
	s.Helper()
	known := map[string]*registry.Service{}
	for _, c := range calls {
		old, has := known[c.Curr.Key()]
		switch {
		case c.Event == registry.EventAdd == has:
			s.Broken("%s of a service that handlers received: %t", c, has)
		case c.Event == registry.EventUpdate && !c.Prev.Equal(old):
			s.Broken("%s: prev is %s, received before was %s", c, describe(c.Prev), describe(old))
		}
		known[c.Curr.Key()] = c.Curr
		if c.Event == registry.EventDelete {
			delete(known, c.Curr.Key())
		}
	}
	services := s.reg.Services()
	for _, service := range services {
		if last := known[service.Key()]; last == nil || !last.Equal(service) {
			s.Broken("the last event had %s, Services has %s", describe(last), describe(service))
		}
	}
	if len(services) != len(known) {
		s.Broken("the events leave %d services, Services has %d", len(known), len(services))
	}
}

// eventsFresh reads the registry within handlers.
func eventsFresh(s *suite) {
	s.reg.AppendServiceHandler(func(_, curr *registry.Service, event registry.Event) {
		found := s.reg.GetService(curr.Hostname)
		listed := false
		for _, service := range s.reg.Services() {
			listed = listed || service.Key() == curr.Key()
		}
		instances := s.reg.InstancesByPort(curr, 0)
		switch {
		case event == registry.EventDelete && (found != nil || listed || len(instances) > 0):
			s.Broken("in the handler of its removal, GetService = %s, Services has it: %t, %d instances", describe(found), listed, len(instances))
		case event != registry.EventDelete && (found == nil || !listed || describe(found) != describe(curr)):
			s.Broken("in the handler of %s %s, GetService = %s, Services has it: %t", event, describe(curr), describe(found), listed)
		}
	})
	s.catchUp()
	s.set(shop())
	s.set(shop().onPorts(80, 81))
	s.remove(shop())
}

func isApart(s *suite) string {
	if s.subject.Apart {
		return "the source of the registry tells of services and endpoints apart"
	}
	return ""
}

// eventsWhole reads the endpoints within handlers and, at the same time, on another goroutine,
// while a service changes with all its endpoints.
func eventsWhole(s *suite) {
	states := [2]fixture{shop(), shop().onPorts(81, 82).with("10.1.1.2", "10.1.1.3")}
	s.reg.AppendServiceHandler(func(_, curr *registry.Service, event registry.Event) {
		for _, f := range states {
			if event != registry.EventDelete && describe(f.service()) == describe(curr) {
				s.expectInstances(curr, f)
			}
		}
	})
	s.catchUp()
	s.set(states[0])
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.expectOneOf(stop, states)
	}()
	for i := range 100 {
		s.set(states[(i+1)%2])
	}
	close(stop)
	s.Await(done, "the end of the reader")
	s.remove(states[0])
}

// expectOneOf requires, until stop is closed, that each read of the endpoints of a service has all
// endpoints of one of its states.
func (s *suite) expectOneOf(stop <-chan struct{}, states [2]fixture) {
	want := [2][]string{states[0].describeEndpoints(0), states[1].describeEndpoints(0)}
	for {
		got := describeInstances(s.reg.InstancesByPort(states[0].service(), 0))
		if !slices.Equal(got, want[0]) && !slices.Equal(got, want[1]) {
			s.Broken("a read while the service changes has %v, want %v or %v", got, want[0], want[1])
			return
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
