// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// forgetful is a registry that tells handlers nothing of what was before them, as Pilot's
// own registries. It has the methods of the interfaces that programs implement, and no others.
type forgetful struct {
	registry.ServiceDiscovery
	registry.Controller
	handlers []registry.WorkloadHandler
}

func newForgetful() *forgetful {
	r := newRegistry(registry.Kubernetes, "c1")
	return &forgetful{ServiceDiscovery: r, Controller: r}
}

func (s *forgetful) Provider() registry.ProviderID { return registry.Kubernetes }
func (s *forgetful) Cluster() registry.ClusterID   { return "c1" }

func (s *forgetful) AppendWorkloadHandler(h func(*registry.WorkloadInstance, registry.Event)) {
	s.handlers = append(s.handlers, h)
}

func (s *forgetful) announce(e registry.Event, pods ...string) {
	for _, text := range pods {
		for _, h := range s.handlers {
			h(pod(text), e)
		}
	}
}

// What a registry has announced is retracted also if it does not replay, whoever has
// wired it.
func TestWorkloadsOfARegistryThatDoesNotReplayAreRetracted(t *testing.T) {
	for name, wire := range map[string]func(*selection, *forgetful){
		"directly, before": func(s *selection, r *forgetful) {
			r.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler)
			s.registries.AddRegistry(given(r))
		},
		"directly, after": func(s *selection, r *forgetful) {
			s.registries.AddRegistry(given(r))
			r.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler)
		},
		"through the aggregate": func(s *selection, r *forgetful) {
			s.registries.AddRegistry(given(r))
			s.registries.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSelection(t)
			one := newForgetful()
			wire(s, one)
			one.announce(registry.EventAdd, "one=1.1.1.1", "two=2.2.2.2", "three=3.3.3.3")
			one.announce(registry.EventDelete, "three=3.3.3.3")
			s.expect("announced", "1.1.1.1", "2.2.2.2")
			next := newForgetful()
			s.registries.UpdateRegistry(given(next))
			s.expect("replaced by one that has announced nothing")
			if name != "through the aggregate" {
				next.AppendWorkloadHandler(s.entries.WorkloadInstanceHandler)
			}
			next.announce(registry.EventUpdate, "two=2.2.2.2", "four=4.4.4.4")
			one.announce(registry.EventUpdate, "one=1.1.1.9", "two=2.2.2.9")
			s.expect("announced by the successor", "2.2.2.2", "4.4.4.4")
			s.registries.DeleteRegistry("c1", registry.Kubernetes)
			s.expect("deleted")
			next.announce(registry.EventUpdate, "two=2.2.2.8")
			s.expect("deleted, and still at work")
		})
	}
}
