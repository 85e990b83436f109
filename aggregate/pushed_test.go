// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	memoryregistry "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// source is a registry with a way to change its service: changes are numbered, and
// 0 removes it.
type source struct {
	registry.Instance
	change func(n int) error
}

// memorySource is a memory registry that has the service host.
func memorySource(host string, cluster registry.ClusterID, updater xdsupdate.XDSUpdater) source {
	r := memoryregistry.New(memoryregistry.Options{Provider: registry.Memory, Cluster: cluster, Updater: updater})
	return source{r, func(n int) error {
		if n == 0 {
			return r.RemoveService(registry.Hostname(host), "ns")
		}
		s := service(host, "ns")
		s.Ports = []*registry.Port{{Name: "p", Number: uint32(n)}}
		return r.SetService(s)
	}}
}

// entrySource is a registry of ServiceEntries, of which one has the service host.
func entrySource(host string, cluster registry.ClusterID, updater xdsupdate.XDSUpdater) source {
	store := memory.Make(istio.Schemas())
	configs := memory.NewController(store)
	entries := configstore.Typed[*networking.ServiceEntry](store)
	r := serviceentry.New(configs, updater, serviceentry.Options{ClusterID: cluster})
	return source{r, func(n int) error {
		defer configs.Drain()
		entry := configstore.NewConfig(host, "ns", &networking.ServiceEntry{
			Hosts: []string{host + ".example.com"}, Resolution: networking.ServiceEntry_STATIC, Addresses: []string{"240.0.0.1"},
			Ports: []*networking.ServicePort{{Name: "p", Number: uint32(max(n, 1)), Protocol: "TCP"}},
		})
		op := configstore.OpUpsert
		if n == 0 {
			op = configstore.OpDelete
		}
		_, err := store.Apply(entries.Mutation(op, entry))
		return err
	}}
}

// wrapped is a registry of a host's own around another one, with a rule of its own.
type wrapped struct{ registry.Instance }

func (w wrapped) Unwrap() registry.Instance { return w.Instance }

// wiring is registries, changes of theirs, and the registry that the handler is
// registered with.
type wiring func(updater xdsupdate.XDSUpdater) (handled registry.Controller, sources []source)

// aggregated adds the sources to an aggregate, to which the handler belongs.
func aggregated(c *aggregate.Controller, sources ...source) (registry.Controller, []source) {
	for _, s := range sources {
		c.AddRegistry(s.Instance)
	}
	return c, sources
}

func alone(s source) (registry.Controller, []source) { return s.Instance, []source{s} }

func wirings() map[string]wiring {
	return map[string]wiring{
		"memory": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(memorySource("a", "c1", u))
		},
		"memory without updater": func(xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(memorySource("a", "c1", nil))
		},
		"memory with another updater": func(xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(memorySource("a", "c1", &configs{on: func(*xdsupdate.PushRequest) {}}))
		},
		"memory with that and another updater": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(memorySource("a", "c1", xdsupdate.Multi(xdsupdate.Discard{}, u)))
		},
		"memory, wrapped": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			s := memorySource("a", "c1", u)
			return wrapped{s.Instance}, []source{s}
		},
		"memory in Simple, with lookups of another one": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			s := memorySource("a", "c1", nil)
			return registry.Simple{Controller: s.Instance, ServiceDiscovery: memorySource("b", "c1", u).Instance}, []source{s}
		},
		"serviceentry": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(entrySource("a", "c1", u))
		},
		"serviceentry without updater": func(xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return alone(entrySource("a", "c1", xdsupdate.Discard{}))
		},
		"aggregate of some that push and some that do not": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			return aggregated(aggregate.NewController(), memorySource("a", "c1", u), memorySource("b", "c2", nil),
				entrySource("c", "c3", u), entrySource("d", "c4", xdsupdate.Discard{}))
		},
		"aggregate with the updater, that lends it": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			c := aggregate.NewController(aggregate.Options{Updater: u})
			var sources []source
			for i, make := range []func(string, registry.ClusterID, xdsupdate.XDSUpdater) source{memorySource, entrySource} {
				c.Add(func(lease xdsupdate.XDSUpdater) registry.Instance {
					sources = append(sources, make([]string{"a", "b"}[i], []registry.ClusterID{"c1", "c2"}[i], lease))
					return sources[i].Instance
				})
			}
			return c, sources
		},
		"aggregate of aggregates": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			inner, outer := aggregate.NewController(), aggregate.NewController()
			_, sources := aggregated(inner, memorySource("a", "c1", u), memorySource("b", "c2", nil))
			outer.AddRegistry(registry.Simple{Controller: inner, ServiceDiscovery: inner, ProviderID: "Aggregate", ClusterID: "inner"})
			more := entrySource("c", "c3", u)
			outer.AddRegistry(more.Instance)
			return outer, append(sources, more)
		},
	}
}

// However a registry, an updater and a ServiceHandler are wired, a change of a
// service is pushed once.
func TestServiceHandlerPushesEachChangeOnce(t *testing.T) {
	for name, wire := range wirings() {
		t.Run(name, func(t *testing.T) {
			var pushed []string
			updater := &configs{on: func(req *xdsupdate.PushRequest) { pushed = append(pushed, req.String()) }}
			handled, sources := wire(updater)
			handled.AppendServiceHandler(xdsupdate.ServiceHandler(updater, handled))
			for i, s := range sources {
				for _, n := range []int{1, 2, 0, 3} {
					if err := s.change(n); err != nil {
						t.Fatal(err)
					}
					if len(pushed) != 1 {
						t.Errorf("source %d, change to %d: pushes %q, want one", i, n, pushed)
					}
					pushed = nil
				}
			}
			// A handler that comes later gets what there is.
			handled.AppendServiceHandler(xdsupdate.ServiceHandler(updater, nil))
			if len(pushed) != len(sources) {
				t.Errorf("pushes %q of a handler that knows no registry, want %d", pushed, len(sources))
			}
		})
	}
}

// A registry that comes with services has asked for their push when the aggregate
// did not show them yet, and one that goes asks for none.
func TestServicesThatComeAndGoWithARegistryArePushedOnce(t *testing.T) {
	for _, attached := range []bool{false, true} {
		var pushed []string
		updater := &configs{on: func(req *xdsupdate.PushRequest) { pushed = append(pushed, req.String()) }}
		c := aggregate.NewController()
		if attached {
			c.AttachUpdater(updater)
		}
		c.AppendServiceHandler(xdsupdate.ServiceHandler(updater, c))
		once := func(what string) {
			t.Helper()
			expect(t, what, pushed, []string{"full push of ServiceEntry/ns/a (service 1)"})
			pushed = nil
		}
		s := memorySource("a", "c1", updater)
		if err := s.change(1); err != nil {
			t.Fatal(err)
		}
		once("set before")
		c.AddRegistry(s.Instance)
		once("added")
		c.DeleteRegistry("c1", registry.Memory)
		once("deleted")
		c.AddRegistry(s.Instance)
		once("added again")
		if err := s.change(2); err != nil {
			t.Fatal(err)
		}
		once("changed")
	}
}

// Of the parts of a Multi those are asked that the registry does not ask.
func TestServiceHandlerAsksTheRest(t *testing.T) {
	var one, two int
	first := &configs{on: func(*xdsupdate.PushRequest) { one++ }}
	second := &configs{on: func(*xdsupdate.PushRequest) { two++ }}
	s := memorySource("a", "c1", first)
	s.AppendServiceHandler(xdsupdate.ServiceHandler(xdsupdate.Multi(first, second), s.Instance))
	if err := s.change(1); err != nil {
		t.Fatal(err)
	}
	expect(t, "pushes", []int{one, two}, []int{1, 1})
}

// PushesTo answers for the change that handlers are being notified of, and for no
// other time.
func TestPushesToAnswersWhileHandlersRun(t *testing.T) {
	updater := &configs{on: func(*xdsupdate.PushRequest) {}}
	s := memorySource("a", "c1", updater)
	c := aggregate.NewController()
	c.AddRegistry(s.Instance)
	var curr *registry.Service
	c.AppendServiceHandler(func(_, s *registry.Service, _ registry.Event) {
		curr = s
		if c.PushesTo(s) == nil {
			t.Error("PushesTo = nil for the change, which the registry pushes")
		}
		if c.PushesTo(service("other", "ns")) != nil {
			t.Error("PushesTo has an updater for another service")
		}
	})
	if err := s.change(1); err != nil {
		t.Fatal(err)
	}
	if curr == nil || c.PushesTo(curr) != nil {
		t.Errorf("PushesTo(%v) has an updater after the handlers have returned", curr)
	}
}

// A service that came with its registry, went, and is back as the very same object, is
// a change of the registry like any other.
func TestServiceThatComesBackIsTheRegistrys(t *testing.T) {
	other := service("a", "ns", at("1.1.1.1"))
	for name, away := range map[string]struct {
		leave, back func(q *quiet, s *registry.Service)
	}{
		"removed": {
			func(q *quiet, s *registry.Service) { q.send(nil, s, registry.EventDelete) },
			func(q *quiet, s *registry.Service) { q.send(nil, s, registry.EventAdd) },
		},
		"changed": {
			func(q *quiet, s *registry.Service) { q.send(s, other, registry.EventUpdate) },
			func(q *quiet, s *registry.Service) { q.send(other, s, registry.EventUpdate) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			pushes := 0
			updater := &configs{on: func(*xdsupdate.PushRequest) { pushes++ }}
			c := aggregate.NewController()
			c.AttachUpdater(updater)
			came := service("a", "ns")
			q := newQuiet(came)
			c.AddRegistry(q)
			q.notify()
			away.leave(q, came)
			c.AppendServiceHandler(xdsupdate.ServiceHandler(updater, c))
			pushes = 0
			away.back(q, came)
			expect(t, "pushes of a registry that asks for none itself", pushes, 1)
			pushes = 0
			c.AppendServiceHandler(xdsupdate.ServiceHandler(updater, c))
			expect(t, "pushes of a handler that comes later", pushes, 1)
		})
	}
}
