// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// wrapped is a registry of a program's own around another one, with a rule of its own.
type wrapped struct{ registry.Instance }

func (w wrapped) Unwrap() registry.Instance { return w.Instance }

// wiring is registries, changes of theirs, and the registry that the handler is
// registered with.
type wiring func(updater xdsupdate.XDSUpdater) (handled registry.Controller, sources []source)

// aggregated adds the sources to an aggregate, to which the handler belongs.
func aggregated(c *aggregate.Controller, sources ...source) (registry.Controller, []source) {
	for _, s := range sources {
		c.AddRegistry(given(s.Instance))
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
				c.AddRegistry(func(lease xdsupdate.XDSUpdater) registry.Instance {
					sources = append(sources, make([]string{"a", "b"}[i], []registry.ClusterID{"c1", "c2"}[i], lease))
					return sources[i].Instance
				})
			}
			return c, sources
		},
		"aggregate of aggregates": func(u xdsupdate.XDSUpdater) (registry.Controller, []source) {
			inner, outer := aggregate.NewController(), aggregate.NewController()
			_, sources := aggregated(inner, memorySource("a", "c1", u), memorySource("b", "c2", nil))
			outer.AddRegistry(given(registry.Simple{Controller: inner, ServiceDiscovery: inner, ProviderID: "Aggregate", ClusterID: "inner"}))
			more := entrySource("c", "c3", u)
			outer.AddRegistry(given(more.Instance))
			return outer, append(sources, more)
		},
	}
}

// pushesOf runs a test in a bubble in which each call of next waits until nothing
// happens any more, and returns the pushes since the last one.
func pushesOf(t *testing.T, test func(t *testing.T, updater xdsupdate.XDSUpdater, next func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var pushed []string
		pusher := xdsupdate.NewPusher(func(req *xdsupdate.PushRequest) { pushed = append(pushed, req.String()) })
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { pusher.Run(stop) })
		synctest.Wait() // what is asked for before it runs is pushed at once
		test(t, pusher, func() []string {
			time.Sleep(time.Minute)
			synctest.Wait()
			out := pushed
			pushed = nil
			return out
		})
		close(stop)
		running.Wait()
	})
}

// However a registry, an updater and a ServiceHandler are wired, a change of a
// service is pushed once: what is asked for twice is merged.
func TestServiceHandlerPushesEachChangeOnce(t *testing.T) {
	for name, wire := range wirings() {
		t.Run(name, func(t *testing.T) {
			pushesOf(t, func(t *testing.T, updater xdsupdate.XDSUpdater, next func() []string) {
				t.Helper()
				handled, sources := wire(updater)
				handled.AppendServiceHandler(xdsupdate.ServiceHandler(updater))
				for i, s := range sources {
					for _, n := range []int{1, 2, 0, 3} {
						if err := s.change(n); err != nil {
							t.Fatal(err)
						}
						if pushed := next(); len(pushed) != 1 {
							t.Errorf("source %d, change to %d: pushes %q, want one", i, n, pushed)
						}
					}
				}
			})
		})
	}
}

// A registry that comes with services, and one that goes, is pushed once.
func TestServicesThatComeAndGoWithARegistryArePushedOnce(t *testing.T) {
	for _, attached := range []bool{false, true} {
		pushesOf(t, func(t *testing.T, updater xdsupdate.XDSUpdater, next func() []string) {
			t.Helper()
			c := aggregate.NewController()
			if attached {
				c.AttachUpdater(updater)
			}
			c.AppendServiceHandler(xdsupdate.ServiceHandler(updater))
			once := func(what, reason string) {
				t.Helper()
				expect(t, what, next(), []string{"full push of ServiceEntry/ns/a (service " + reason + ")"})
			}
			s := memorySource("a", "c1", updater)
			if err := s.change(1); err != nil {
				t.Fatal(err)
			}
			asked := map[bool]string{false: "1", true: "2"}[attached]
			once("set before", "1")
			c.AddRegistry(given(s.Instance))
			once("added", asked)
			c.DeleteRegistry("c1", registry.Memory)
			once("deleted", asked)
			c.AddRegistry(given(s.Instance))
			once("added again", asked)
			if err := s.change(2); err != nil {
				t.Fatal(err)
			}
			once("changed", "2")
		})
	}
}
