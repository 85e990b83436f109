// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// selection is an aggregate with a ServiceEntry that selects the pods of a
// cluster.
type selection struct {
	t          *testing.T
	pusher     *xdsupdate.Pusher
	registries *aggregate.Controller
	entries    *serviceentry.Controller
	// wire connects a cluster's workloads with entries.
	wire func(cluster *memory.Registry)
}

// withWirings runs a test, in a bubble, with the ways in which hosts connect a
// cluster's workloads with the ServiceEntries.
func withWirings(t *testing.T, test func(s *selection)) {
	t.Helper()
	for name, connect := range map[string]func(s *selection){
		"directly": func(s *selection) {
			s.wire = func(cluster *memory.Registry) { cluster.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler) }
		},
		"through the aggregate": func(s *selection) {
			s.wire = func(*memory.Registry) {}
			s.registries.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSelection(t)
				connect(s)
				test(s)
			})
		})
	}
}

func newSelection(t *testing.T) *selection {
	t.Helper()
	configs := storememory.NewController(storememory.Make(istio.Schemas()))
	s := &selection{t: t, pusher: xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})}
	s.registries = aggregate.NewController(aggregate.Options{Updater: s.pusher})
	s.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		s.entries = serviceentry.New(configs, updater)
		return s.entries
	})
	_, err := configstore.Typed[*networking.ServiceEntry](configs).Create(configstore.NewConfig("web", "ns", &networking.ServiceEntry{
		Hosts:            []string{"web.example.com"},
		Ports:            []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution:       networking.ServiceEntry_STATIC,
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	configs.Drain()
	return s
}

// cluster returns a cluster with pods, given as "name=address".
func (s *selection) cluster(pods ...string) *memory.Registry {
	s.t.Helper()
	r := newRegistry(registry.Kubernetes, "c1")
	s.wire(r)
	s.set(r, pods...)
	return r
}

func pod(text string) *registry.WorkloadInstance {
	name, address, _ := strings.Cut(text, "=")
	return &registry.WorkloadInstance{
		Cluster: "c1", Namespace: "ns", Name: name, Endpoint: &registry.Endpoint{
			Addresses: []string{address}, WorkloadName: name,
			Shared: &registry.EndpointAttributes{Labels: registry.Labels{"app": "web"}, Namespace: "ns", ClusterID: "c1"},
		},
	}
}

func (s *selection) set(r *memory.Registry, pods ...string) {
	s.t.Helper()
	for _, text := range pods {
		if err := r.SetWorkload(pod(text)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *selection) remove(r *memory.Registry, name string) {
	s.t.Helper()
	if err := r.RemoveWorkload(pod(name).Key()); err != nil && !errors.Is(err, memory.ErrUnknownWorkload) {
		s.t.Error(err)
	}
}

// expect demands the addresses of the ServiceEntry's endpoints.
func (s *selection) expect(what string, want ...string) {
	s.t.Helper()
	got := strings.Fields(indexed(s.pusher, "web.example.com", "ns"))
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: endpoints %v, want %v", what, got, want)
	}
}

func TestWorkloadsOfADeletedRegistryAreRetracted(t *testing.T) {
	withWirings(t, func(s *selection) {
		cluster := s.cluster("one=1.1.1.1", "two=2.2.2.2")
		s.registries.AddRegistry(given(cluster))
		s.expect("added", "1.1.1.1", "2.2.2.2")
		s.registries.DeleteRegistry("c1", registry.Kubernetes)
		s.expect("deleted")
		s.set(cluster, "one=1.1.1.9", "three=3.3.3.3")
		s.expect("deleted, and still at work")
		s.remove(cluster, "two")
		next := s.cluster("two=2.2.2.2")
		s.registries.AddRegistry(given(next))
		s.expect("another one added", "2.2.2.2")
		s.set(cluster, "two=2.2.2.9")
		s.remove(cluster, "two")
		s.expect("another one added, while the first is still at work", "2.2.2.2")
	})
}

func TestWorkloadsOfAReplacedRegistryAreRetracted(t *testing.T) {
	withWirings(t, func(s *selection) {
		old := s.cluster("same=1.1.1.1", "changed=2.2.2.2", "gone=3.3.3.3")
		s.registries.AddRegistry(given(old))
		s.expect("added", "1.1.1.1", "2.2.2.2", "3.3.3.3")
		next := s.cluster("same=1.1.1.1", "changed=2.2.2.9", "new=4.4.4.4")
		s.registries.UpdateRegistry(given(next))
		s.expect("replaced", "1.1.1.1", "2.2.2.9", "4.4.4.4")
		s.set(old, "gone=3.3.3.8", "changed=2.2.2.8", "late=5.5.5.5")
		s.expect("replaced, while the predecessor is at work", "1.1.1.1", "2.2.2.9", "4.4.4.4")
		s.remove(old, "same")
		s.expect("replaced, and the predecessor removes what the successor has", "1.1.1.1", "2.2.2.9", "4.4.4.4")
		s.set(next, "late=5.5.5.5")
		s.expect("the successor has it, too", "1.1.1.1", "2.2.2.9", "4.4.4.4", "5.5.5.5")
		s.set(old, "new=4.4.4.9")
		s.remove(next, "new")
		s.expect("the successor has it no more", "1.1.1.1", "2.2.2.9", "5.5.5.5")
	})
}

// A registry that the Controller runs is not stopped before its workloads were
// retracted, whenever its Run sees the stop, and while its workloads change.
func TestWorkloadsOfARegistryThatRunsAreRetracted(t *testing.T) {
	withWirings(t, func(s *selection) {
		s.registries.AppendServiceHandler(func(_, _ *registry.Service, e registry.Event) {
			if e == registry.EventDelete {
				time.Sleep(time.Nanosecond) // until all else has gone on
			}
		})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { s.registries.Run(stop) })
		defer running.Wait()
		defer close(stop)
		for round := range 20 {
			cluster := s.cluster("one=1.1.1.1", "two=2.2.2.2")
			set(s.t, cluster, service("own.example.com", "ns"))
			s.registries.AddRegistryAndRun(given(cluster), nil)
			time.Sleep(time.Second)
			s.expect("added", "1.1.1.1", "2.2.2.2")
			var writers sync.WaitGroup
			for i := range 4 {
				writers.Go(func() { s.set(cluster, fmt.Sprintf("one=1.1.1.%d", i), fmt.Sprintf("new-%d=4.4.4.%d", i, i)) })
			}
			var want []string
			if round%2 == 0 {
				s.registries.DeleteRegistry("c1", registry.Kubernetes)
			} else {
				s.registries.UpdateRegistry(given(s.cluster("two=2.2.2.9")))
				want = []string{"2.2.2.9"}
			}
			writers.Wait()
			time.Sleep(time.Second)
			s.expect(fmt.Sprint("round ", round), want...)
			s.registries.DeleteRegistry("c1", registry.Kubernetes)
			time.Sleep(time.Second)
			s.expect(fmt.Sprint("end of round ", round))
		}
	})
}

// A registry that is busy when it is deleted has sent what its workloads are retracted
// from before it is stopped.
func TestWorkloadsOfABusyRegistryAreRetracted(t *testing.T) {
	withWirings(t, func(s *selection) {
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { s.registries.Run(stop) })
		defer running.Wait()
		defer close(stop)
		cluster := s.cluster("one=1.1.1.1")
		cluster.AppendServiceHandler(func(*registry.Service, *registry.Service, registry.Event) { time.Sleep(time.Second) })
		s.registries.AddRegistryAndRun(given(cluster), nil)
		synctest.Wait()
		s.expect("added", "1.1.1.1")
		running.Go(func() { set(s.t, cluster, service("own.example.com", "ns")) })
		synctest.Wait() // until the handler is called
		s.registries.DeleteRegistry("c1", registry.Kubernetes)
		time.Sleep(2 * time.Second)
		s.expect("deleted")
	})
}

// A registry that comes back is one again: its workloads count.
func TestRegistryThatComesBackIsNotRetracted(t *testing.T) {
	s := newSelection(t)
	s.wire = func(cluster *memory.Registry) { cluster.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler) }
	cluster := s.cluster("one=1.1.1.1")
	s.registries.AddRegistry(given(cluster))
	s.registries.DeleteRegistry("c1", registry.Kubernetes)
	s.expect("deleted")
	s.registries.AddRegistry(given(cluster))
	s.set(cluster, "two=2.2.2.2")
	s.expect("back", "2.2.2.2")
	s.remove(cluster, "two")
	s.expect("back, and without it")
}

// Events keep coming while the registry is deleted, or replaced.
func TestWorkloadsAreRetractedWhileEventsKeepComing(t *testing.T) {
	withWirings(t, func(s *selection) {
		for round := range 20 {
			cluster := s.cluster("one=1.1.1.1", "two=2.2.2.2")
			s.registries.AddRegistry(given(cluster))
			var wg sync.WaitGroup
			for worker := range 2 {
				wg.Go(func() {
					for i := range 50 {
						s.set(cluster, fmt.Sprintf("one=1.1.%d.%d", worker, i), "three=3.3.3.3")
						s.remove(cluster, "three")
					}
				})
			}
			var want []string
			if round%2 == 0 {
				s.registries.DeleteRegistry("c1", registry.Kubernetes)
			} else {
				s.registries.UpdateRegistry(given(s.cluster("one=9.9.9.9", "four=4.4.4.4")))
				want = []string{"4.4.4.4", "9.9.9.9"}
			}
			wg.Wait()
			s.expect(fmt.Sprint("round ", round), want...)
			s.registries.DeleteRegistry("c1", registry.Kubernetes)
			s.expect(fmt.Sprint("end of round ", round))
		}
	})
}
