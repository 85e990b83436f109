// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// reportObject is the object of a service in one of the namespaces of a report.
func reportObject(kind configstore.GroupVersionKind, i, namespaces int) configstore.Meta {
	return configstore.Meta{
		GroupVersionKind: kind, Namespace: fmt.Sprintf("ns%d", i%namespaces), Name: fmt.Sprintf("s%d", i), CreationTimestamp: time.Unix(int64(i), 0),
	}
}

// reported is a mesh that reports are made of.
type reported struct {
	services, namespaces, virtualServices int
	// private: one service and one VirtualService of each namespace are for that namespace only.
	private bool
	// sidecars: each namespace has a Sidecar.
	sidecars bool
}

func (r reported) stage(tb testing.TB) *scene {
	tb.Helper()
	var objects configList
	var services []*registry.Service
	for i := range r.services {
		namespace := fmt.Sprintf("ns%d", i%r.namespaces)
		svc := testService(namespace, registry.Hostname(fmt.Sprintf("s%d.%s.svc.cluster.local", i, namespace)), 80, 8080)
		services = append(services, svc)
		if i >= r.virtualServices {
			continue
		}
		to := &networking.Destination{Host: string(svc.Hostname), Port: &networking.PortSelector{Number: 80}}
		spec := &networking.VirtualService{
			Hosts: []string{string(svc.Hostname)}, Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: to}}}},
		}
		if r.private && i < r.namespaces {
			svc.Attributes.ExportTo, spec.ExportTo = []registry.Visibility{registry.VisibilityPrivate}, []string{"."}
		}
		objects = append(objects, &configstore.Config{Meta: reportObject(istio.VirtualService, i, r.namespaces), Spec: spec})
	}
	for i := 0; r.sidecars && i < r.namespaces; i++ {
		objects = append(objects, &configstore.Config{Meta: reportObject(istio.Sidecar, i, r.namespaces), Spec: &networking.Sidecar{
			Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*", "ns0/*"}}},
		}})
	}
	return stage(tb, traffic.Options{}, objects, populate(services...))
}

func BenchmarkIneffective(b *testing.B) {
	for _, r := range []reported{
		{10_000, 1, 200, false, false},
		{10_000, 200, 200, false, false},
		{10_000, 200, 400, true, false},
		{10_000, 200, 200, false, true},
		{10_000, 200, 2000, false, false},
		{10_000, 200, 10_000, false, false},
	} {
		b.Run(fmt.Sprintf("namespaces=%d/virtualservices=%d/private=%t/sidecars=%t", r.namespaces, r.virtualServices, r.private, r.sidecars), func(b *testing.B) {
			s, port := r.stage(b), uint32(0)
			report := func() {
				if got := s.policies.Ineffective(); len(got) > 0 {
					b.Fatal(got[0])
				}
			}
			b.Run("first", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					port++
					s.service(testService("ns0", "other.ns0.svc.cluster.local", port))
					b.StartTimer()
					report()
				}
			})
			b.Run("again", func(b *testing.B) {
				for b.Loop() {
					report()
				}
			})
		})
	}
}

// TestReportOfManyNamespaces: what a report costs does not grow with the namespaces that the
// objects are in, and the next one of the same push costs nothing.
func TestReportOfManyNamespaces(t *testing.T) {
	for _, r := range []reported{{services: 1000}, {services: 1000, private: true}, {services: 1000, sidecars: true}} {
		r.virtualServices = 200
		var bytes []uint64
		for _, r.namespaces = range []int{2, 100} {
			s := r.stage(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if got := s.policies.Ineffective(); len(got) > 0 {
				t.Fatal(got[0])
			}
			runtime.ReadMemStats(&after)
			bytes = append(bytes, after.TotalAlloc-before.TotalAlloc)
			if again := testing.AllocsPerRun(1, func() { s.policies.Ineffective() }); again > 100 {
				t.Errorf("%+v: a second report makes %v allocations", r, again)
			}
		}
		if bytes[1] > 2*bytes[0] {
			t.Errorf("%+v: a report allocates %d bytes with 2 namespaces and %d with 100", r, bytes[0], bytes[1])
		}
	}
}
