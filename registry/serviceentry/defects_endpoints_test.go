// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

func TestDefectEndpointOncePerServiceAddress(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", func(spec *networking.ServiceEntry) {
		spec.Hosts = []string{"a.com", "b.com"}
		spec.Addresses = []string{"10.0.0.9", "10.0.0.1"}
	}, "", "1.1.1.1", "1.1.1.2"))
	s.expect("create", "service ns/a.com add", "service ns/b.com add",
		"eds ns/a.com [1.1.1.1:80 1.1.1.2:80]", "eds ns/b.com [1.1.1.1:80 1.1.1.2:80]",
		"config service ServiceEntry/ns/a.com ServiceEntry/ns/b.com")
	if got := len(s.registry.Services()); got != 4 {
		t.Errorf("%d services, want 4", got)
	}
	diff(t, "targets", s.targets("ns", "1.1.1.2"), []string{
		"a/a.com/10.0.0.9:80>80", "a/a.com/10.0.0.1:80>80", "a/b.com/10.0.0.9:80>80", "a/b.com/10.0.0.1:80>80",
	})
	service := s.registry.GetService("a.com")
	diff(t, "address that GetService chooses", service.DefaultAddress, "10.0.0.9")
	if got := len(s.registry.InstancesByPort(service, 80)); got != 2 {
		t.Errorf("%d instances, want 2", got)
	}
}

func TestDefectSameEndpointTwice(t *testing.T) {
	t.Parallel()
	// Two entries contribute an endpoint that proxies cannot tell from the other.
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"), entry("b", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
	s.recorder.take()
	s.delete(istio.ServiceEntry, "ns", "a")
	s.expect("delete one of the entries", "config service ServiceEntry/ns/a.com")
	s.delete(istio.ServiceEntry, "ns", "b")
	s.expect("delete the other", "service ns/a.com delete", "config service ServiceEntry/ns/a.com")
}

func TestDefectEntriesOfOneHostShareFate(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"), entry("b", nil, "a.com", "1.1.1.2"))
	s.recorder.take()
	s.apply(inNamespace("ns2", entry("c", nil, "a.com", "1.1.1.3")))
	s.expect("the host in another namespace", "service ns2/a.com add", "eds ns2/a.com [1.1.1.3:80]", "config service ServiceEntry/ns2/a.com")
	s.apply(entry("a", nil, "other.com", "1.1.1.1"))
	s.expect("one entry drops the host that another defines",
		"service ns/other.com add", "eds ns/a.com [1.1.1.2:80]", "eds ns/other.com [1.1.1.1:80]",
		"config service ServiceEntry/ns/a.com ServiceEntry/ns/other.com")
	s.delete(istio.ServiceEntry, "ns2", "c")
	s.expect("delete the host in the other namespace", "service ns2/a.com delete", "config service ServiceEntry/ns2/a.com")
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.2:80]")
}

func TestDefectRemovalTakesEndpointsOfOthersAtTheAddress(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"), entry("b", nil, "b.com", "1.1.1.1"), entry("c", selecting, "c.com"))
	s.apply(workloadEntry("w", "1.1.1.1", nil))
	s.delete(istio.ServiceEntry, "ns", "a")
	diff(t, "targets without one entry", s.targets("ns", "1.1.1.1"), []string{"b/b.com/0.0.0.0:80>80", "c/c.com/0.0.0.0:80>80"})
	s.delete(istio.WorkloadEntry, "ns", "w")
	diff(t, "targets without the WorkloadEntry", s.targets("ns", "1.1.1.1"), []string{"b/b.com/0.0.0.0:80>80"})
}

func TestDefectLastStaticEndpointStays(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"))
	s.recorder.take()
	s.apply(entry("a", nil, "a.com"))
	s.expect("remove the last endpoint", "eds ns/a.com []")
	diff(t, "targets", s.targets("ns", "1.1.1.1"), []string(nil))
}

func TestDefectLastEndpointOfDNSServiceNotPushed(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", edits(dns, selecting), "a.com"))
	s.recorder.take()
	s.apply(workloadEntry("w", "vm.example.org", nil))
	s.expect("the first endpoint", "eds ns/a.com [vm.example.org:80]", "config endpoint ServiceEntry/ns/a.com")
	s.delete(istio.WorkloadEntry, "ns", "w")
	s.expect("no endpoint any more", "eds ns/a.com []", "config endpoint ServiceEntry/ns/a.com")
}

func TestDefectRoundRobinSlotFreedByAnother(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", roundRobin, "a.com", "one.example.org"), entry("b", roundRobin, "a.com", "two.example.org"))
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[one.example.org:80]")
	s.recorder.take()
	s.delete(istio.ServiceEntry, "ns", "b")
	s.expect("delete the entry that contributes nothing", "config service ServiceEntry/ns/a.com")
	s.apply(entry("c", roundRobin, "a.com", "three.example.org"))
	s.expect("a further entry", "service ns/a.com add", "config service ServiceEntry/ns/a.com")
	s.delete(istio.ServiceEntry, "ns", "a")
	s.expect("delete the one that contributes", "eds ns/a.com [three.example.org:80]", "config service ServiceEntry/ns/a.com")
}

func TestDefectResolutionChangeLeavesEndpoints(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"), workloadEntry("name", "vm.example.org", nil), workloadEntry("ip", "1.1.1.1", nil))
	diff(t, "endpoints of the STATIC service", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
	s.recorder.take()
	s.apply(entry("a", edits(dns, selecting), "a.com"))
	calls := s.recorder.take()
	diff(t, "resolution", s.registry.GetService("a.com").Resolution, registry.DNSLB)
	diff(t, "endpoints of the DNS service", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80 vm.example.org:80]")
	diff(t, "last call", calls[len(calls)-1], "config service ServiceEntry/ns/a.com")
	s.apply(entry("a", selecting, "a.com"))
	diff(t, "endpoints of the STATIC service again", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
}

func TestDefectCreationTimeIgnored(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	younger := entry("b", roundRobin, "a.com", "two.example.org")
	s.apply(entry("a", roundRobin, "a.com", "one.example.org"), younger)
	diff(t, "service", s.registry.GetService("a.com").Attributes.ObjectName, "a")
	younger.CreationTimestamp = time.Unix(1, 0)
	s.apply(younger)
	diff(t, "service", s.registry.GetService("a.com").Attributes.ObjectName, "b")
	diff(t, "first of the services", s.registry.Services()[0].Attributes.ObjectName, "b")
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[two.example.org:80]")
}

func TestDefectEmptySelectorDependsOnVersion(t *testing.T) {
	t.Parallel()
	// Istio 1.30 selects the whole namespace, its predecessors nothing.
	s := newSystem(t, serviceentry.Options{})
	s.apply(
		entry("a", func(spec *networking.ServiceEntry) { spec.WorkloadSelector = &networking.WorkloadSelector{} }, "a.com"),
		workloadEntry("w", "1.1.1.1", map[string]string{"some": "label"}), inNamespace("ns2", workloadEntry("w", "1.1.1.2", nil)),
	)
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
}
