// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// having matches namespaces with labels.
func having(labels registry.Labels) func(registry.Labels) bool { return labels.SubsetOf }

func TestDefectNamespaceChangeNotSeen(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{Mesh: serviceentry.Mesh{Visibility: []serviceentry.VisibilityRule{{
		Matches: having(registry.Labels{"team": "a"}), Visibility: registry.VisibilityPrivate,
	}}}})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"), inNamespace("ns2", entry("b", nil, "b.com")))
	s.recorder.take()
	s.registry.UpdateNamespace(serviceentry.Namespace{
		Name: "ns", Annotations: map[string]string{"networking.istio.io/traffic-distribution": "PreferClose"},
	})
	s.expect("an annotation", "service ns/a.com update", "config service ServiceEntry/ns/a.com")
	diff(t, "traffic distribution", s.registry.GetService("a.com").Attributes.TrafficDistribution, registry.TrafficDistributionPreferSameZone)
	s.registry.UpdateNamespace(serviceentry.Namespace{Name: "ns", Labels: registry.Labels{"team": "a"}})
	s.expect("a label instead", "service ns/a.com update", "config service ServiceEntry/ns/a.com")
	attributes := s.registry.GetService("a.com").Attributes
	diff(t, "traffic distribution", attributes.TrafficDistribution, registry.TrafficDistributionAny)
	diff(t, "visibility", attributes.Visibility, registry.VisibilityPrivate)
	s.registry.DeleteNamespace("ns")
	s.expect("no namespace", "service ns/a.com update", "config service ServiceEntry/ns/a.com")
	diff(t, "visibility", s.registry.GetService("a.com").Attributes.Visibility, registry.Visibility(""))
}

func TestDefectFormerTrustDomainStays(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	w := workloadEntry("w", "1.1.1.1", nil)
	w.Spec.(*networking.WorkloadEntry).ServiceAccount = "sa"
	inline := entry("b", nil, "b.com", "1.1.1.2")
	inline.Spec.(*networking.ServiceEntry).Endpoints[0].ServiceAccount = "sa"
	s.apply(entry("a", selecting, "a.com"), w, inline, entry("c", nil, "c.com", "1.1.1.3"))
	s.recorder.take()
	s.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: "example.org"})
	s.expect("another trust domain", "eds ns/a.com [1.1.1.1:80]", "eds ns/b.com [1.1.1.2:80]")
	for _, key := range []string{"ns/a.com", "ns/b.com"} {
		diff(t, "account in "+key, s.recorder.endpoints[key][0].Attributes().ServiceAccount, "spiffe://example.org/ns/ns/sa/sa")
	}
	s.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: "example.org"})
	s.expect("the same trust domain")
}

func TestDefectCanonicalLabelsInStoredObject(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{CanonicalServiceForMeshExternal: true})
	config := entry("a", nil, "a.com", "1.1.1.1")
	config.Labels = map[string]string{"mine": "yes"}
	s.apply(config)
	diff(t, "labels of the service", s.registry.GetService("a.com").Attributes.Labels, registry.Labels{
		"mine": "yes", "service.istio.io/canonical-name": "a", "service.istio.io/canonical-revision": "latest",
	})
	want := map[string]string{"mine": "yes"}
	if stored := s.cache.Get(istio.ServiceEntry, "a", "ns"); !maps.Equal(stored.Labels, want) || !maps.Equal(config.Labels, want) {
		t.Errorf("labels in the store are %v, want %v", stored.Labels, want)
	}
}

func TestDefectAllocatedIPv6AddressesCollide(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{AddressAllocation: serviceentry.AllocateByHash})
	// The 17th address is 0.17, the 256th is 1.1: without padding both end in 11.
	one, two := hostWithSlot(16), hostWithSlot(255)
	s.apply(entry("one", nil, one, "1.1.1.1"), entry("two", nil, two, "1.1.1.1"))
	got := func(host string) []string {
		service := s.registry.GetService(registry.Hostname(host))
		return []string{service.AutoAllocatedIPv4, service.AutoAllocatedIPv6}
	}
	diff(t, "addresses of the one", got(one), []string{"240.240.0.17", "2001:2::f0f0:11"})
	diff(t, "addresses of the other", got(two), []string{"240.240.1.1", "2001:2::f0f0:101"})
}

// TestAllocatedAddressesByHostName: of two services of one age that have the same
// place the one with the lesser host name gets it, whatever its namespace and
// object.
func TestAllocatedAddressesByHostName(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{AddressAllocation: serviceentry.AllocateByHash})
	first, second := hostIn("z", "a", 16), hostIn("a", "b", 16)
	one, two := inNamespace("z", entry("z", nil, first)), inNamespace("a", entry("a", nil, second))
	one.CreationTimestamp = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	two.CreationTimestamp = one.CreationTimestamp
	s.apply(one, two)
	diff(t, "the first", s.registry.GetService(registry.Hostname(first)).AutoAllocatedIPv4, "240.240.0.17")
	if got := s.registry.GetService(registry.Hostname(second)).AutoAllocatedIPv4; got == "240.240.0.17" || got == "" {
		t.Errorf("the second has %q", got)
	}
}

// hostWithSlot returns a host name that has its address, in namespace ns, at a
// place among the 65024 that there are.
func hostWithSlot(slot uint32) string { return hostIn("ns", "h", slot) }

// hostIn is hostWithSlot for any namespace and start of the host name.
func hostIn(namespace, start string, slot uint32) string {
	for i := 0; ; i++ {
		host := fmt.Sprintf("%s%d.com", start, i)
		h := fnv.New32a()
		_, _ = fmt.Fprint(h, namespace, "/", host)
		if h.Sum32()%65024 == slot {
			return host
		}
	}
}

func TestDefectAllocatedAddressesNotUnique(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{AddressAllocation: serviceentry.AllocateByHash})
	for i := range 3000 {
		s.write(entry(fmt.Sprint("e", i), nil, fmt.Sprintf("h%d.com", i)))
	}
	s.cache.Drain()
	owner := map[string]string{}
	for _, service := range s.registry.Services() {
		for _, address := range []string{service.AutoAllocatedIPv4, service.AutoAllocatedIPv6} {
			if other := owner[address]; address == "" || other != "" {
				t.Fatalf("%s has the address %q, as has %q", service.Hostname, address, other)
			}
			owner[address] = service.Key()
		}
	}
}
