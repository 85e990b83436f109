// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// The tests in the defects files are named after what goes wrong in Istio; each
// shows that it does not here.

// recordWorkloads makes the registry write down the events of workload handlers.
func (s *system) recordWorkloads() *[]string {
	var out []string
	s.registry.AppendWorkloadHandler(func(wi *registry.WorkloadInstance, e registry.Event) {
		out = append(out, fmt.Sprintf("%s %s/%s %s", e, wi.Namespace, wi.Name, wi.Endpoint.Address()))
	})
	return &out
}

// podEvent hands over a workload of another registry.
func (s *system) podEvent(wi *registry.WorkloadInstance, e registry.Event) {
	s.registry.WorkloadInstanceHandler(wi, e)
}

func inNamespace(namespace string, c configstore.Config) configstore.Config {
	c.Namespace = namespace
	return c
}

func TestDefectHandlersKeepWorkloadThatGotHostName(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"vm.example.org", "unix:///run/vm.sock"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, serviceentry.Options{})
			received := s.recordWorkloads()
			s.apply(workloadEntry("w", "1.1.1.1", nil))
			s.apply(workloadEntry("w", address, nil))
			s.apply(workloadEntry("w", "1.1.1.2", nil))
			diff(t, "handlers received", *received, []string{"add ns/w 1.1.1.1", "delete ns/w 1.1.1.1", "add ns/w 1.1.1.2"})
		})
	}
}

func TestDefectWorkloadsOfOneNameHideOneAnother(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	here, there := pod("w", nil, "1.1.1.2"), pod("w", nil, "1.1.1.3")
	there.Cluster, there.Endpoint.Shared.ClusterID = "c2", "c2"
	s.recorder.take()
	s.podEvent(here, registry.EventAdd)
	s.expect("a pod named as a WorkloadEntry", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80]", "proxy c1 1.1.1.2")
	s.podEvent(there, registry.EventAdd)
	s.expect("a pod of that name in another cluster", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80 1.1.1.3:80]", "proxy c2 1.1.1.3")
	s.podEvent(there, registry.EventDelete)
	s.expect("delete that", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80]")
	s.delete(istio.WorkloadEntry, "ns", "w")
	s.expect("delete the WorkloadEntry", "eds ns/a.com [1.1.1.2:80]")
	diff(t, "targets", s.targets("ns", "1.1.1.1", "1.1.1.2", "1.1.1.3"), []string{"a/a.com/0.0.0.0:80>80"})
}

func TestDefectPodBehindWorkloadEntryShowsLate(t *testing.T) {
	t.Parallel()
	// Whichever comes first, and although nothing else of the namespace changes.
	for _, podFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("podFirst=%t", podFirst), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, serviceentry.Options{})
			s.apply(entry("a", selecting, "a.com"))
			if !podFirst {
				s.apply(workloadEntry("w", "1.1.1.1", nil))
			}
			s.podEvent(pod("w", nil, "1.1.1.2"), registry.EventAdd)
			if podFirst {
				s.apply(workloadEntry("w", "1.1.1.1", nil))
			}
			s.podEvent(pod("w", nil, "1.1.1.3"), registry.EventUpdate)
			diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80 1.1.1.3:80]")
		})
	}
}

func TestDefectProxyUpdateForWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	for _, address := range []string{"vm.example.org", "unix:///run/vm.sock"} {
		s.apply(workloadEntry("w", address, nil))
		s.expect("a WorkloadEntry at " + address)
	}
	s.apply(workloadEntry("w", "2001:db8:0::1", nil))
	s.expect("an IP address", "proxy c1 2001:db8::1")
	s.apply(workloadEntry("w", "1.1.1.1", nil))
	s.expect("another one, for which Istio calls nobody", "proxy c1 1.1.1.1")
}

func TestDefectLabelsOfProxyDependOnHistory(t *testing.T) {
	t.Parallel()
	web := func(from string) map[string]string { return map[string]string{"app": "web", "from": from} }
	steps := []func(s *system){
		func(s *system) { s.apply(workloadEntry("b", "1.1.1.1", web("entry-b"))) },
		func(s *system) { s.apply(workloadEntry("a", "1.1.1.1", web("entry-a"))) },
		func(s *system) { s.podEvent(pod("z", web("pod-z"), "1.1.1.1"), registry.EventAdd) },
		func(s *system) { s.apply(inNamespace("ns2", workloadEntry("a", "1.1.1.1", web("other-entry")))) },
	}
	for first := range steps {
		s := newSystem(t, serviceentry.Options{})
		s.apply(entry("a", selecting, "a.com"), inNamespace("ns2", entry("a", selecting, "a.com")))
		for i := range steps {
			steps[(first+i)%len(steps)](s)
		}
		from := func(namespace string) string {
			return s.registry.GetProxyWorkloadLabels(&registry.Proxy{Namespace: namespace, IPAddresses: []string{"1.1.1.1"}})["from"]
		}
		diff(t, "labels in its own namespace", from("ns"), "pod-z")
		diff(t, "labels in another namespace", from("ns2"), "other-entry")
		diff(t, "labels in an unknown namespace", from(""), "pod-z")
		s.podEvent(pod("z", nil), registry.EventDelete)
		diff(t, "labels without the pod", from("ns"), "entry-a")
	}
}

func TestDefectLabelChangeUpdatesOneHostOnly(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selectingApp("a"), "a.com"), entry("b", selectingApp("b"), "b.com"))
	s.apply(workloadEntry("w", "1.1.1.1", map[string]string{"app": "a"}))
	s.recorder.take()
	s.apply(workloadEntry("w", "1.1.1.1", map[string]string{"app": "b"}))
	s.expect("the label changed", "eds ns/a.com []", "eds ns/b.com [1.1.1.1:80]", "proxy c1 1.1.1.1")
	s.podEvent(pod("p", registry.Labels{"app": "a"}, "1.1.1.2"), registry.EventAdd)
	s.recorder.take()
	s.podEvent(pod("p", registry.Labels{"app": "b"}, "1.1.1.2"), registry.EventUpdate)
	s.expect("that of a pod", "eds ns/a.com []", "eds ns/b.com [1.1.1.1:80 1.1.1.2:80]", "proxy c1 1.1.1.2")
}

func TestDefectResultDependsOnWhoCameFirst(t *testing.T) {
	t.Parallel()
	for _, entryFirst := range []bool{true, false} {
		s := newSystem(t, serviceentry.Options{})
		if entryFirst {
			s.apply(entry("a", selecting, "a.com"))
		}
		s.apply(workloadEntry("w", "1.1.1.1", nil))
		s.podEvent(pod("p", nil, "1.1.1.2"), registry.EventAdd)
		if !entryFirst {
			s.apply(entry("a", selecting, "a.com"))
		}
		diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80 1.1.1.2:80]")
		diff(t, "targets", s.targets("ns", "1.1.1.1"), []string{"a/a.com/0.0.0.0:80>80"})
	}
}

func TestDefectDeleteOfUnknownPodRemovesAnother(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.podEvent(pod("old", nil, "1.1.1.1"), registry.EventAdd)
	s.recorder.take()
	s.podEvent(pod("new", nil, "1.1.1.1"), registry.EventDelete)
	s.expect("delete a pod that never was, with the address of another")
	s.podEvent(pod("old", nil, "1.1.1.1"), registry.EventDelete)
	s.expect("delete the pod", "eds ns/a.com []")
	s.podEvent(pod("old", nil, "1.1.1.1"), registry.EventDelete)
	s.expect("delete it again")
}

func TestDefectFormerAddressOfPodStillFound(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.podEvent(pod("p", nil, "1.1.1.1"), registry.EventAdd)
	s.recorder.take()
	s.podEvent(pod("p", nil, "1.1.1.2"), registry.EventUpdate)
	s.expect("another address", "eds ns/a.com [1.1.1.2:80]", "proxy c1 1.1.1.2")
	diff(t, "targets at the former address", s.targets("ns", "1.1.1.1"), []string(nil))
	diff(t, "targets at the new address", s.targets("ns", "1.1.1.2"), []string{"a/a.com/0.0.0.0:80>80"})
}

func TestDefectWorkloadsOfOneAddressOverwriteEachOther(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selectingApp("a"), "a.com"), entry("b", selectingApp("b"), "b.com"))
	s.podEvent(pod("p", registry.Labels{"app": "a"}, "1.1.1.1"), registry.EventAdd)
	s.podEvent(pod("q", registry.Labels{"app": "b"}, "1.1.1.1"), registry.EventAdd)
	diff(t, "targets", s.targets("ns", "1.1.1.1"), []string{"a/a.com/0.0.0.0:80>80", "b/b.com/0.0.0.0:80>80"})
	s.podEvent(pod("q", nil), registry.EventDelete)
	diff(t, "targets of the one that is left", s.targets("ns", "1.1.1.1"), []string{"a/a.com/0.0.0.0:80>80"})
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80]")
}

func TestDefectUnixSocketOfferedToOthers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	received := s.recordWorkloads()
	s.apply(entry("d", edits(dns, selecting), "d.com"), entry("s", selecting, "s.com"))
	s.apply(workloadEntry("w", "unix:///run/w.sock", nil))
	diff(t, "endpoints of a DNS service", brief(s.recorder.endpoints["ns/d.com"]), "[/run/w.sock:0<80]")
	diff(t, "endpoints of a STATIC service", brief(s.recorder.endpoints["ns/s.com"]), "[]")
	diff(t, "handlers received", *received, []string(nil))
}

func TestDefectSecondAddressNotFound(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.podEvent(pod("p", nil, "1.1.1.1", "2001:db8::1"), registry.EventAdd)
	want := []string{"a/a.com/0.0.0.0:80>80"}
	for _, ips := range [][]string{{"1.1.1.1"}, {"2001:db8::1"}, {"2001:db8:0:0::1"}, {"1.1.1.1", "2001:db8::1"}} {
		diff(t, fmt.Sprint("targets at ", ips), s.targets("ns", ips...), want)
	}
	labels := s.registry.GetProxyWorkloadLabels(&registry.Proxy{Namespace: "ns", IPAddresses: []string{"2001:db8::1"}})
	diff(t, "labels at the second address", labels, registry.Labels{"app": "web"})
	s.podEvent(pod("p", nil), registry.EventDelete)
	diff(t, "targets after delete", s.targets("ns", "2001:db8::1"), []string(nil))
}

func TestDefectNetworkInLabelOnly(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{NetworkOf: func(address string, _ registry.Labels) string { return "of " + address }})
	inField := workloadEntry("field", "1.1.1.2", nil)
	inField.Spec.(*networking.WorkloadEntry).Network = "field"
	s.apply(
		entry("a", selecting, "a.com"), workloadEntry("callback", "1.1.1.1", nil), inField,
		workloadEntry("label", "1.1.1.3", map[string]string{"app": "web", "topology.istio.io/network": "label"}),
	)
	var got []string
	for _, e := range s.recorder.endpoints["ns/a.com"] {
		got = append(got, e.WorkloadName+": "+e.Attributes().Network+", "+e.Attributes().Labels["topology.istio.io/network"])
	}
	diff(t, "networks in the field and in the label", got, []string{
		"callback: of 1.1.1.1, of 1.1.1.1", "field: field, field", "label: label, label",
	})
}
