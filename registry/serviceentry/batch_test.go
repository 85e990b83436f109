// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// batchRecorder is a recorder that takes batches and writes down what readers see
// when one begins and ends.
type batchRecorder struct {
	*recorder
	services func() int
}

func (r *batchRecorder) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	r.record("begin with %d services", r.services())
	publish(r)
	r.record("end with %d services", r.services())
}

// TestBatch: a state is visible before the batch that reports it. Handlers and
// ProxyUpdate come after it.
func TestBatch(t *testing.T) {
	t.Parallel()
	var updater *batchRecorder
	s := newSystemWith(t, serviceentry.Options{}, func(r *recorder) xdsupdate.XDSUpdater {
		updater = &batchRecorder{r, func() int { return 0 }}
		return updater
	})
	updater.services = func() int { return len(s.registry.Services()) }
	s.registry.AppendServiceHandler(func(_, curr *registry.Service, e registry.Event) {
		s.recorder.record("handler %s %s", e, curr.Hostname)
	})
	s.recorder.take()
	s.write(entry("a", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	s.cache.Drain()
	s.expect("an entry and a workload", "begin with 1 services", "service ns/a.com add", "eds ns/a.com [1.1.1.1:80]",
		serviceA, "proxy c1 1.1.1.1", "end with 1 services", "handler add a.com")
}

// TestOneConfigUpdate: a changed service asks for one push, whether handlers are
// registered or not.
func TestOneConfigUpdate(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.registry.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {})
	s.apply(entry("a", nil, "a.com"))
	s.apply(entry("a", ports(8080), "a.com"))
	var pushes []string
	for _, call := range s.recorder.take() {
		if call == serviceA {
			pushes = append(pushes, call)
		}
	}
	diff(t, "pushes for two changes", pushes, []string{serviceA, serviceA})
}

// TestServiceSnapshot: a set has the services of one moment, and says which host
// names changed since another one. It is the same as long as services are.
func TestServiceSnapshot(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	empty := s.registry.ServiceSnapshot()
	s.apply(entry("a", addresses("10.0.0.2", "10.0.0.1"), "a.com"), entry("b", nil, "b.com"))
	before := s.registry.ServiceSnapshot()
	s.apply(workloadEntry("w", "1.1.1.1", nil), entry("b", nil, "b.com", "1.1.1.1"))
	if s.registry.ServiceSnapshot() != before {
		t.Error("another set although no service changed")
	}
	s.apply(entry("b", ports(8080), "b.com"), entry("c", nil, "a.com"))
	after := s.registry.ServiceSnapshot()
	diff(t, "changed", slices.Sorted(after.ChangedSince(before)), []registry.Hostname{"a.com", "b.com"})
	diff(t, "services", []int{len(empty.List()), len(before.List()), len(after.List())}, []int{0, 3, 4})
	var order []string
	for _, service := range after.Host("a.com") {
		order = append(order, fmt.Sprint(service.Attributes.ObjectName, " ", service.DefaultAddress))
	}
	diff(t, "precedence", order, []string{"a 10.0.0.2", "a 10.0.0.1", "c 0.0.0.0"})

	hashing := serviceentry.New(memory.NewController(memory.Make(istio.Schemas())), xdsupdate.Discard{},
		serviceentry.Options{AddressAllocation: serviceentry.AllocateByHash})
	if hashing.ServiceSnapshot() != nil {
		t.Error("a set of services whose addresses depend on all others")
	}
}

// TestNetworkOfPanics: a workload for which the program's function panics has no network,
// and nothing else changes.
func TestNetworkOfPanics(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{NetworkOf: func(address string, _ registry.Labels) string {
		if address == "1.1.1.1" {
			panic("network")
		}
		return "net"
	}})
	s.apply(entry("a", hosts("a.com", "b.com"), "", "1.1.1.1", "1.1.1.2"), workloadEntry("w", "1.1.1.9", nil))
	diff(t, "targets", s.targets("ns", "1.1.1.1"), []string{"a/a.com/0.0.0.0:80>80", "a/b.com/0.0.0.0:80>80"})
	got := map[string]string{}
	for _, i := range s.registry.InstancesByPort(s.registry.GetService("a.com"), 80) {
		got[i.Endpoint.Address()] = i.Endpoint.Attributes().Network
	}
	diff(t, "networks", got, map[string]string{"1.1.1.1": "", "1.1.1.2": "net"})
}

// TestOrderOfConversions: what a change of the mesh converts anew is notified in the order of names.
func TestOrderOfConversions(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	var want []string
	for i := range 9 {
		name := fmt.Sprint("w", i)
		w := workloadEntry(name, fmt.Sprint("1.1.1.", i), nil)
		w.Spec.(*networking.WorkloadEntry).ServiceAccount = "sa"
		s.apply(w)
		want = append(want, fmt.Sprintf("update ns/%s 1.1.1.%d", name, i))
	}
	received := s.recordWorkloads()
	s.registry.Drain()
	*received = nil
	s.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: "example.org"})
	diff(t, "handlers received", *received, want)
}
