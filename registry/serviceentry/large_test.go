// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// TestLoweredSizes runs the models with every buffer too small.
func TestLoweredSizes(t *testing.T) {
	t.Parallel()
	testmain.Lowered(t, "^(TestModel|TestAfterLargeBatch|TestScenarios)$")
}

// TestAfterLargeBatch: a batch for which the room of another is not kept leaves a registry
// that works as before.
func TestAfterLargeBatch(t *testing.T) {
	t.Parallel()
	for _, n := range []int{200, 300} {
		s := newSystem(t, serviceentry.Options{})
		received := s.recordWorkloads()
		entries := make([]configstore.Config, n)
		for i := range entries {
			entries[i] = entry(fmt.Sprint("se-", i), selectingApp(fmt.Sprint("app-", i)), fmt.Sprintf("svc-%d.example.com", i))
		}
		s.write(entries...)
		s.cache.Drain()
		s.recorder.take()
		for range 2 { // The room of the first of them may have been kept.
			labels := map[string]string{"app": "app-7"}
			s.apply(workloadEntry("w", "1.1.1.1", labels))
			s.expect("a WorkloadEntry", "eds ns/svc-7.example.com [1.1.1.1:80]", "proxy c1 1.1.1.1")
			s.podEvent(pod("p", labels, "2.2.2.2"), registry.EventAdd)
			s.expect("a pod", "eds ns/svc-7.example.com [1.1.1.1:80 2.2.2.2:80]", "proxy c1 2.2.2.2")
			s.podEvent(pod("p", nil, "2.2.2.2"), registry.EventDelete)
			s.delete(workloadEntry("w", "", nil).GroupVersionKind, "ns", "w")
			s.recorder.take()
			diff(t, "handlers received", *received, []string{"add ns/w 1.1.1.1", "delete ns/w 1.1.1.1"})
			*received = nil
		}
	}
}

// TestModelAfterLargeBatch makes random histories that begin with many objects at once.
func TestModelAfterLargeBatch(t *testing.T) {
	for _, tt := range []struct{ objects, deliveries, changes int }{{300, 40, 4}, {5000, 4, 40}} {
		t.Run(fmt.Sprint(tt.objects), func(t *testing.T) {
			t.Parallel()
			h := &history{rand: rand.New(rand.NewPCG(uint64(tt.objects), 0))}
			m := newModelSystem(t, true, modelKinds-1)
			for i := range tt.objects {
				e := h.serviceEntry()
				e.Name, e.Spec.(*networking.ServiceEntry).Hosts = fmt.Sprint("many-", i), []string{fmt.Sprintf("many-%d.example.com", i)}
				h.put(m, m.world.entries, e)
			}
			before := m.world.outcome()
			m.deliver()
			m.recorder.Take()
			clear(m.touched)
			for range tt.deliveries {
				for range tt.changes {
					h.step(m)
				}
				m.deliver()
				after := m.world.outcome()
				m.check(before, after)
				before = after
				if t.Failed() {
					t.Fatalf("the last changes were:\n%s", strings.Join(h.log[max(0, len(h.log)-tt.changes):], "\n"))
				}
			}
			for _, d := range explain.Verify(m.registry) {
				t.Errorf("Verify: %s", d)
			}
		})
	}
}
