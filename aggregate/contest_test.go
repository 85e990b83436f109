// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// A predecessor's event comes between the receiver's handling of the successor's event
// and the aggregate's: the receiver gets a state that is no longer the successor's
// present one, and has to get that once more.
func TestPredecessorsEventBetweenTwoHandlers(t *testing.T) {
	s := newSelection(t)
	var between func()
	s.wire = func(cluster *memory.Registry) {
		cluster.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
			s.entries.WorkloadInstanceHandler(w, e)
			if f := between; f != nil {
				between = nil
				f()
			}
		})
	}
	old := s.cluster("one=1.1.1.1")
	s.registries.AddRegistry(given(old))
	next := s.cluster("one=1.1.1.1")
	s.registries.UpdateRegistry(given(next))
	s.expect("replaced", "1.1.1.1")
	between = func() { s.set(old, "one=9.9.9.9") }
	s.set(next, "one=1.1.1.2")
	s.expect("changed by both", "1.1.1.2")
	between = func() { s.set(old, "one=9.9.9.8") }
	s.remove(next, "one")
	s.expect("removed by the successor, changed by the predecessor")
}

// receiver is a registry that takes the workloads of others, and notes them.
type receiver struct {
	*memory.Registry
	taken eventLog
}

func (r *receiver) WorkloadInstanceHandler(w *registry.WorkloadInstance, e registry.Event) {
	r.taken.workload(w, e)
}

// What a registry sends after it has come back is not retracted, not even for a
// moment.
func TestRegistryThatComesBackSendsForItself(t *testing.T) {
	c := aggregate.NewController()
	other := &receiver{Registry: newRegistry(registry.External, "entries")}
	c.AddRegistry(given(other))
	cluster := newRegistry(registry.Kubernetes, "c1")
	c.AddRegistry(given(cluster))
	if err := cluster.SetWorkload(pod("one=1.1.1.1")); err != nil {
		t.Fatal(err)
	}
	other.taken.expect(t) // its program has not wired it
	c.DeleteRegistry("c1", registry.Kubernetes)
	other.taken.expect(t, "delete one")
	c.AddRegistry(given(cluster))
	if err := cluster.SetWorkload(pod("two=2.2.2.2")); err != nil {
		t.Fatal(err)
	}
	other.taken.expect(t)
}

// Receivers that have the right workload are not called when its registry is replaced.
func TestSameWorkloadsAreNotSentAgain(t *testing.T) {
	c := aggregate.NewController()
	other := &receiver{Registry: newRegistry(registry.External, "entries")}
	c.AddRegistry(given(other))
	with := func(pods ...string) *memory.Registry {
		r := newRegistry(registry.Kubernetes, "c1")
		for _, text := range pods {
			if err := r.SetWorkload(pod(text)); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	c.AddRegistry(given(with("same=1.1.1.1", "changed=2.2.2.2")))
	c.UpdateRegistry(given(with("same=1.1.1.1", "changed=2.2.2.9")))
	other.taken.expect(t, "update changed")
}
