// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// raceRounds is how many events each of these tests makes while others read.
const raceRounds = 1500

// race makes events, one for each generation, while every reader reads again and
// again. A reader returns what is wrong, "" for nothing.
func race(t *testing.T, write func(generation int), readers ...func() string) {
	t.Helper()
	var ended atomic.Bool
	var group sync.WaitGroup
	for _, read := range readers {
		group.Go(func() {
			for last := false; !last; {
				last = ended.Load()
				if wrong := read(); wrong != "" {
					t.Error(wrong)
					return
				}
			}
		})
	}
	for generation := range raceRounds {
		write(generation)
	}
	ended.Store(true)
	group.Wait()
}

// newRaceSystem is a registry of which nobody watches the calls.
func newRaceSystem(t *testing.T) *system {
	t.Helper()
	return newSystemWith(t, serviceentry.Options{}, func(*recorder) xdsupdate.XDSUpdater { return xdsupdate.Discard{} })
}

// generationEntry is an entry of which the port, and the weight of its three
// endpoints, tell the generation.
func generationEntry(name string, generation int, hosts ...string) configstore.Config {
	return entry(name, func(spec *networking.ServiceEntry) {
		spec.Hosts, spec.Ports[0].Number = hosts, uint32(1000+generation)
		for _, e := range spec.GetEndpoints() {
			e.Weight = uint32(generation)
		}
	}, "", "1.1.1.1", "1.1.1.2", "1.1.1.3")
}

// generationOf returns the generation of instances, which must be of one and the
// same, each in all its parts; -1 if there are none.
func generationOf(instances []*registry.ServiceInstance, want int) (generation int, wrong string) {
	if len(instances) == 0 {
		return -1, ""
	}
	if len(instances) != want {
		return 0, fmt.Sprintf("%d instances, want %d", len(instances), want)
	}
	generation = int(instances[0].Endpoint.Attributes().LbWeight)
	for _, i := range instances {
		port := uint32(1000 + generation)
		if int(i.Endpoint.Attributes().LbWeight) != generation || i.Endpoint.ServicePort != port || i.ServicePort.Number != port ||
			i.Service.Ports[0].Number != port {
			return 0, fmt.Sprintf("parts of several generations: weight %d, endpoint's port %d, port %d, service's port %d, first weight %d",
				i.Endpoint.Attributes().LbWeight, i.Endpoint.ServicePort, i.ServicePort.Number, i.Service.Ports[0].Number, generation)
		}
	}
	return generation, ""
}

// TestReadersNeverSeeHalfAnEntry: a service and the endpoints that came with it
// appear, change and disappear together, and what a reader has seen once is not
// taken back by its next question, whichever that is.
func TestReadersNeverSeeHalfAnEntry(t *testing.T) {
	t.Parallel()
	s := newRaceSystem(t)
	proxy := &registry.Proxy{Namespace: "ns", IPAddresses: []string{"1.1.1.2"}}
	questions := []func() (generation int, wrong string){
		func() (int, string) { return serviceGeneration(s.registry.GetService("a.com")), "" },
		func() (int, string) {
			service := s.registry.GetService("b.com")
			if service == nil {
				return -1, ""
			}
			return generationOf(s.registry.InstancesByPort(service, 0), 3)
		},
		// One workload is an instance of both hosts.
		func() (int, string) { return generationOf(s.registry.GetProxyServiceInstances(proxy), 2) },
		func() (int, string) {
			all := s.registry.Services()
			if len(all) == 0 {
				return -1, ""
			}
			if len(all) != 2 || serviceGeneration(all[0]) != serviceGeneration(all[1]) {
				return 0, "Services shows one host without the other"
			}
			return serviceGeneration(all[0]), ""
		},
	}
	reader := func(offset int) func() string {
		seen, next := -1, offset
		return func() string {
			generation, wrong := questions[next%len(questions)]()
			next++
			if wrong == "" && generation >= 0 && generation < seen {
				wrong = fmt.Sprintf("generation %d after %d", generation, seen)
			}
			seen = max(seen, generation)
			return wrong
		}
	}
	race(t, func(generation int) {
		hosts := []string{"a.com", "b.com"}
		if generation%3 == 1 {
			slices.Reverse(hosts)
		}
		next := generationEntry("a", generation, hosts...)
		if spec, _ := next.Spec.(*networking.ServiceEntry); generation%5 >= 2 {
			dns(spec)
		}
		if generation%7 == 6 {
			s.delete(istio.ServiceEntry, "ns", "a")
		} else {
			s.apply(next)
		}
	}, reader(0), reader(1))
}

func serviceGeneration(s *registry.Service) int {
	if s == nil {
		return -1
	}
	return int(s.Ports[0].Number) - 1000
}

// TestReadersNeverSeeHalfABatch: objects that the store committed together are
// seen together, WorkloadEntries and the entries that select them, too.
func TestReadersNeverSeeHalfABatch(t *testing.T) {
	t.Parallel()
	s := newRaceSystem(t)
	selectingEntry := func(name, host string, generation int) configstore.Config {
		c := generationEntry(name, generation, host)
		spec, _ := c.Spec.(*networking.ServiceEntry)
		spec.Endpoints = nil
		selecting(spec)
		return c
	}
	proxy := &registry.Proxy{Namespace: "ns", IPAddresses: []string{"2.2.2.2"}}
	race(t, func(generation int) {
		w := workloadEntry("w", "2.2.2.2", nil)
		spec, _ := w.Spec.(*networking.WorkloadEntry)
		spec.Weight = uint32(generation)
		op := configstore.OpUpdate
		if generation == 0 {
			op = configstore.OpCreate
		}
		if _, err := s.cache.Apply(
			configstore.Mutation{Op: op, Config: selectingEntry("a", "a.com", generation)},
			configstore.Mutation{Op: op, Config: w},
			configstore.Mutation{Op: op, Config: selectingEntry("b", "b.com", generation)},
		); err != nil {
			t.Error(err)
		}
		s.cache.Drain()
	}, func() string {
		_, wrong := generationOf(s.registry.GetProxyServiceInstances(proxy), 2)
		return wrong
	}, func() string {
		_, wrong := generationOf(s.registry.InstancesByPort(s.registry.GetService("b.com"), 0), 1)
		return wrong
	})
}

// TestReadersNeverSeeHalfAMove: a workload that gets another address is at exactly
// one of them, and one that other entries select is selected by exactly one.
func TestReadersNeverSeeHalfAMove(t *testing.T) {
	t.Parallel()
	s := newRaceSystem(t)
	s.apply(entry("a", selectingApp("a"), "a.com"), entry("b", selectingApp("b"), "b.com"))
	move := func(generation int) {
		app, address := "a", "1.1.1.1"
		if generation%2 == 1 {
			app = "b"
		}
		if generation/2%2 == 1 {
			address = "1.1.1.2"
		}
		s.podEvent(pod("p", registry.Labels{"app": app}, address), registry.EventUpdate)
	}
	move(0)
	proxy := &registry.Proxy{Namespace: "ns", IPAddresses: []string{"1.1.1.1", "1.1.1.2"}}
	race(t, move, func() string {
		if got := len(s.registry.GetProxyServiceInstances(proxy)); got != 1 {
			return fmt.Sprintf("the proxy is %d instances, want 1", got)
		}
		return ""
	}, func() string {
		if got := s.registry.GetProxyWorkloadLabels(proxy); len(got) != 1 {
			return fmt.Sprintf("the proxy has the labels %v", got)
		}
		return ""
	})
}
