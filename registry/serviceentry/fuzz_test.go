// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// FuzzServiceEntry converts any ServiceEntry next to one that shares its first
// host, with a workload that an empty selector selects. The registry must not
// fail, must show what its stores say, and must leave the message as it was.
func FuzzServiceEntry(f *testing.F) {
	for _, c := range []configstore.Config{
		entry("a", nil, "a.com", "1.1.1.1", "unix:///a", "vm.org"),
		entry("a", edits(roundRobin, twoPorts), "*"),
		entry("a", func(e *networking.ServiceEntry) {
			e.WorkloadSelector = &networking.WorkloadSelector{}
			e.Addresses = []string{"10.0.0.0/8", "::/0", "::1/128"}
		}, "a.com"),
	} {
		message, err := proto.Marshal(c.Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		spec := &networking.ServiceEntry{}
		if proto.Unmarshal(message, spec) != nil {
			return
		}
		before := proto.Clone(spec)
		s := newUncheckedSystem(t, serviceentry.Options{CanonicalServiceForMeshExternal: true, AddressAllocation: serviceentry.AllocateByHash}, updates)
		host := "a.com"
		if len(spec.GetHosts()) > 0 {
			host = spec.GetHosts()[0]
		}
		config := entry("a", nil, "a.com")
		config.Spec = spec
		s.apply(workloadEntry("w", "1.1.1.2", nil), config, entry("b", roundRobin, host, "e.org"))
		diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
		for _, service := range s.registry.Services() {
			s.registry.InstancesByPort(service, 0)
			explain.Host(s.registry, service.Attributes.Namespace, service.Hostname)
		}
		if !proto.Equal(before, spec) {
			t.Error("the message was modified")
		}
		s.apply(entry("a", nil, "a.com"))
		diff(t, "Verify after an update", explain.Verify(s.registry), []explain.Difference(nil))
	})
}

// FuzzWorkloadEntry is FuzzServiceEntry for a WorkloadEntry with any metadata and
// status.
func FuzzWorkloadEntry(f *testing.F) {
	spec, err := proto.Marshal(&networking.WorkloadEntry{
		Address: "1.1.1.1", Labels: map[string]string{"app": "web", "istio-locality": "r.z"}, Ports: map[string]uint32{"http": 1},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(spec, []byte(nil), "app", "web", "proxy.istio.io/health-checks-enabled", "true")
	f.Fuzz(func(t *testing.T, specBytes, statusBytes []byte, labelKey, labelValue, annotationKey, annotationValue string) {
		spec, status := &networking.WorkloadEntry{}, &meta.IstioStatus{}
		if proto.Unmarshal(specBytes, spec) != nil || proto.Unmarshal(statusBytes, status) != nil {
			return
		}
		s := newUncheckedSystem(t, serviceentry.Options{}, updates)
		config := workloadEntry("w", "", nil)
		config.Labels = map[string]string{labelKey: labelValue}
		config.Annotations = map[string]string{annotationKey: annotationValue}
		config.Spec, config.Status = spec, status
		known := 0
		s.registry.AppendWorkloadHandler(func(_ *registry.WorkloadInstance, e registry.Event) {
			switch e {
			case registry.EventAdd:
				known++
			case registry.EventDelete:
				known--
			case registry.EventUpdate:
			}
		})
		s.apply(entry("s", selecting, "a.com"), entry("d", edits(dns, selectingApp("db")), "d.com"), config)
		diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
		explain.Workload(s.registry, registry.WorkloadKey{Kind: registry.WorkloadEntry, Namespace: "ns", Name: "w"})
		s.apply(workloadEntry("w", "vm.org", nil))
		diff(t, "workloads that handlers know", known, 0)
		diff(t, "Verify after an update", explain.Verify(s.registry), []explain.Difference(nil))
	})
}
