// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// TestManySources lets configs, workloads, namespaces and the mesh change at the
// same time.
func TestManySources(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 100 {
			s.apply(entry("a", selectingApp([]string{"web", "db"}[i%2]), "a.com"))
			s.apply(workloadEntry("w", fmt.Sprintf("10.0.1.%d", i%3), nil))
		}
		s.apply(entry("a", selecting, "a.com"))
	})
	all.Go(func() {
		for i := range 200 {
			s.registry.WorkloadInstanceHandler(pod(fmt.Sprint("p", i%5), nil, fmt.Sprintf("10.0.0.%d", i%5)), registry.Event(1+i%3))
		}
	})
	all.Go(func() {
		for i := range 50 {
			s.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: fmt.Sprint("td", i%3)})
			s.registry.UpdateNamespace(serviceentry.Namespace{Name: "ns", Annotations: map[string]string{"networking.istio.io/traffic-distribution": "PreferClose"}})
			s.registry.DeleteNamespace("ns")
		}
	})
	all.Go(func() {
		for range 50 {
			cancel := s.registry.SubscribeServices(func(_, _ *registry.Service, _ registry.Event) {})
			_ = explain.Host(s.registry, "ns", "a.com").String()
			cancel()
		}
	})
	all.Wait()
	s.cache.Drain()
	diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
	var shown []*registry.Endpoint
	for _, i := range s.registry.InstancesByPort(s.registry.GetService("a.com"), 80) {
		shown = append(shown, i.Endpoint)
	}
	diff(t, "reported endpoints", brief(s.recorder.endpoints["ns/a.com"]), brief(shown))
}

// TestLoop connects two registries to each other in both directions: a workload
// goes once from one to the other and no further.
func TestLoop(t *testing.T) {
	t.Parallel()
	a := newSystem(t, serviceentry.Options{ClusterID: "c1"})
	b := newSystem(t, serviceentry.Options{ClusterID: "c2"})
	var notified []string
	forward := func(from string, to *serviceentry.Controller) func(*registry.WorkloadInstance, registry.Event) {
		return func(w *registry.WorkloadInstance, e registry.Event) {
			notified = append(notified, from+" "+e.String()+" "+w.Name)
			to.WorkloadInstanceHandler(w, e)
		}
	}
	a.registry.AppendWorkloadHandler(forward("a", b.registry))
	b.registry.AppendWorkloadHandler(forward("b", a.registry))
	// An echo must not count either.
	a.registry.AppendWorkloadHandler(a.registry.WorkloadInstanceHandler)
	b.apply(entry("s", selecting, "b.com"))
	a.apply(entry("s", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	diff(t, "a's endpoints", brief(a.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
	diff(t, "b's endpoints", brief(b.recorder.endpoints["ns/b.com"]), "[1.1.1.1:80]")
	a.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "a's endpoints", brief(a.recorder.endpoints["ns/a.com"]), "[]")
	diff(t, "b's endpoints", brief(b.recorder.endpoints["ns/b.com"]), "[]")
	diff(t, "events", notified, []string{"a add w", "a delete w"})
}

// TestOwnWorkloadComesBack: what this registry announced is no news, whoever
// tells it, and a WorkloadEntry takes the place of a workload of the same key.
func TestOwnWorkloadComesBack(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("s", selecting, "a.com"))
	cancel := s.registry.SubscribeWorkloads(func(w *registry.WorkloadInstance, _ registry.Event) {
		s.registry.WorkloadInstanceHandler(w, registry.EventUpdate)
	})
	s.apply(workloadEntry("w", "1.1.1.1", nil))
	cancel()
	s.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "endpoints after an echo", brief(s.recorder.endpoints["ns/a.com"]), "[]")

	same := pod("w", nil, "1.1.1.2")
	same.Kind = registry.WorkloadEntry
	s.registry.WorkloadInstanceHandler(same, registry.EventAdd)
	diff(t, "endpoints of a foreign one", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.2:80]")
	s.apply(workloadEntry("w", "1.1.1.1", nil))
	diff(t, "endpoints of our own", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
	s.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "endpoints of neither", brief(s.recorder.endpoints["ns/a.com"]), "[]")
	diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
}
