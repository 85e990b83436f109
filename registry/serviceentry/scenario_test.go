// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// step is one change and the calls that it causes, in their order.
type step struct {
	name string
	do   func(*system)
	want []string
}

func apply(configs ...configstore.Config) func(*system) {
	return func(s *system) { s.apply(configs...) }
}

func remove(kind configstore.GroupVersionKind, name string) func(*system) {
	return func(s *system) { s.delete(kind, "ns", name) }
}

func announce(w *registry.WorkloadInstance, event registry.Event) func(*system) {
	return func(s *system) { s.registry.WorkloadInstanceHandler(w, event) }
}

func calls(lines ...string) []string { return lines }

func ports(target uint32) func(*networking.ServiceEntry) {
	return func(e *networking.ServiceEntry) { e.Ports[0].TargetPort = target }
}

func hosts(names ...string) func(*networking.ServiceEntry) {
	return func(e *networking.ServiceEntry) { e.Hosts = names }
}

func addresses(all ...string) func(*networking.ServiceEntry) {
	return func(e *networking.ServiceEntry) { e.Addresses = all }
}

const (
	serviceA = "config service ServiceEntry/ns/a.com"
	endpoint = "config endpoint ServiceEntry/ns/a.com"
)

// TestScenarios holds the calls for each kind of change: those that Istio 1.30
// makes, without the ones that change nothing, in our order.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for name, steps := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, serviceentry.Options{})
			for _, step := range steps {
				step.do(s)
				s.expect(step.name, step.want...)
			}
		})
	}
}

func scenarios() map[string][]step {
	added := []string{"service ns/a.com add", "eds ns/a.com [1.1.1.1:80]", serviceA}
	selects := step{"create", apply(entry("a", selecting, "a.com")), calls("service ns/a.com add", serviceA)}
	selectsDNS := step{"create", apply(entry("a", edits(dns, selecting), "a.com")), calls("service ns/a.com add", serviceA)}
	return map[string][]step{
		"static": {
			{"create", apply(entry("a", nil, "a.com", "1.1.1.1")), added},
			{"no-op update", apply(entry("a", nil, "a.com", "1.1.1.1")), nil},
			{"endpoint added", apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2")), calls("eds ns/a.com [1.1.1.1:80 1.1.1.2:80]")},
			{"endpoint removed", apply(entry("a", nil, "a.com", "1.1.1.1")), calls("eds ns/a.com [1.1.1.1:80]")},
			{"last endpoint removed", apply(entry("a", nil, "a.com")), calls("eds ns/a.com []")},
			{"endpoint back", apply(entry("a", nil, "a.com", "1.1.1.1")), calls("eds ns/a.com [1.1.1.1:80]")},
			{"target port", apply(entry("a", ports(8080), "a.com", "1.1.1.1")), calls("service ns/a.com update", "eds ns/a.com [1.1.1.1:8080<80]", serviceA)},
			{"delete", remove(istio.ServiceEntry, "a"), calls("service ns/a.com delete", serviceA)},
		},
		"addresses": {
			{"create", apply(entry("a", addresses("10.0.0.1", "10.0.0.2"), "a.com", "1.1.1.1")), added},
			{"another order", apply(entry("a", addresses("10.0.0.2", "10.0.0.1"), "a.com", "1.1.1.1")), nil},
			{"another address", apply(entry("a", addresses("10.0.0.3"), "a.com", "1.1.1.1")), calls("service ns/a.com add", serviceA)},
			{"no address", apply(entry("a", nil, "a.com", "1.1.1.1")), calls("service ns/a.com add", serviceA)},
		},
		"second entry": {
			{"create", apply(entry("a", nil, "a.com", "1.1.1.1")), added},
			{"second entry", apply(entry("b", nil, "a.com", "1.1.1.2")), calls("service ns/a.com add", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80]", serviceA)},
			{"delete the first", remove(istio.ServiceEntry, "a"), calls("eds ns/a.com [1.1.1.2:80]", serviceA)},
			{"delete the second", remove(istio.ServiceEntry, "b"), calls("service ns/a.com delete", serviceA)},
		},
		"hosts": {
			{"create", apply(entry("a", nil, "a.com", "1.1.1.1")), added},
			{"host added", apply(entry("a", hosts("a.com", "b.com"), "", "1.1.1.1")), calls("service ns/b.com add", "eds ns/b.com [1.1.1.1:80]", "config service ServiceEntry/ns/b.com")},
			{"host renamed", apply(entry("a", hosts("a.com", "c.com"), "", "1.1.1.1")), calls(
				"service ns/b.com delete", "service ns/c.com add", "eds ns/c.com [1.1.1.1:80]",
				"config service ServiceEntry/ns/b.com ServiceEntry/ns/c.com")},
			{"host removed", apply(entry("a", nil, "a.com", "1.1.1.1")), calls("service ns/c.com delete", "config service ServiceEntry/ns/c.com")},
		},
		"dns": {
			{"create", apply(entry("a", dns, "a.com", "e.org")), calls("service ns/a.com add", "eds ns/a.com [e.org:80]", serviceA)},
			{"endpoints changed", apply(entry("a", dns, "a.com", "f.org")), calls("eds ns/a.com [f.org:80]", endpoint)},
			{"the host itself", apply(entry("a", dns, "a.com")), calls("eds ns/a.com [a.com:80]", endpoint)},
			{"static instead", apply(entry("a", nil, "a.com", "1.1.1.1")), calls("service ns/a.com update", "eds ns/a.com [1.1.1.1:80]", serviceA)},
		},
		"workload entry": {
			selects,
			{"add", apply(workloadEntry("w", "1.1.1.1", nil)), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"labels changed, still selected", apply(workloadEntry("w", "1.1.1.1", map[string]string{"app": "web", "v": "1"})), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"labels changed, not selected", apply(workloadEntry("w", "1.1.1.1", map[string]string{"app": "x"})), calls("eds ns/a.com []", "proxy c1 1.1.1.1")},
			{"labels back", apply(workloadEntry("w", "1.1.1.1", nil)), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"IP changed", apply(workloadEntry("w", "1.1.1.2", nil)), calls("eds ns/a.com [1.1.1.2:80]", "proxy c1 1.1.1.2")},
			{"selector changed", apply(entry("a", selectingApp("x"), "a.com")), calls("service ns/a.com update", "eds ns/a.com []", serviceA)},
			{"selector back", apply(entry("a", selecting, "a.com")), calls("service ns/a.com update", "eds ns/a.com [1.1.1.2:80]", serviceA)},
			{"delete", remove(istio.WorkloadEntry, "w"), calls("eds ns/a.com []")},
		},
		"workload entry of a dns service": {
			selectsDNS,
			{"add", apply(workloadEntry("w", "vm.org", nil)), calls("eds ns/a.com [vm.org:80]", endpoint)},
			{"add an IP", apply(workloadEntry("x", "1.1.1.1", nil)), calls("eds ns/a.com [1.1.1.1:80 vm.org:80]", endpoint, "proxy c1 1.1.1.1")},
			{"delete", remove(istio.WorkloadEntry, "x"), calls("eds ns/a.com [vm.org:80]", endpoint)},
			{"delete the last", remove(istio.WorkloadEntry, "w"), calls("eds ns/a.com []", endpoint)},
		},
		"unselected workload entry": {
			selects,
			{"add", apply(workloadEntry("w", "1.1.1.1", map[string]string{"app": "x"})), calls("proxy c1 1.1.1.1")},
			{"host name", apply(workloadEntry("v", "vm.org", nil)), nil},
			{"delete", remove(istio.WorkloadEntry, "w"), nil},
		},
		"pod": {
			selects,
			{"add", announce(pod("p", nil, "1.1.1.1"), registry.EventAdd), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"the same again", announce(pod("p", nil, "1.1.1.1"), registry.EventUpdate), nil},
			{"labels changed", announce(pod("p", registry.Labels{"app": "web", "v": "1"}, "1.1.1.1"), registry.EventUpdate), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"not selected", announce(pod("p", registry.Labels{}, "1.1.1.1"), registry.EventUpdate), calls("eds ns/a.com []", "proxy c1 1.1.1.1")},
			{"selected again", announce(pod("p", nil, "1.1.1.1"), registry.EventUpdate), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"IP changed", announce(pod("p", nil, "1.1.1.2"), registry.EventUpdate), calls("eds ns/a.com [1.1.1.2:80]", "proxy c1 1.1.1.2")},
			{"service changed", apply(entry("a", edits(selecting, ports(8080)), "a.com")), calls("service ns/a.com update", "eds ns/a.com [1.1.1.2:8080<80]", serviceA, "proxy c1 1.1.1.2")},
			{"delete", announce(pod("p", nil, "1.1.1.2"), registry.EventDelete), calls("eds ns/a.com []")},
			{"delete again", announce(pod("p", nil, "1.1.1.2"), registry.EventDelete), nil},
		},
		"dual-stack pod": {
			selects,
			{"add", announce(pod("p", nil, "1.1.1.1", "2001:db8::1"), registry.EventAdd), calls("eds ns/a.com [1.1.1.1+2001:db8::1:80]", "proxy c1 1.1.1.1")},
			{"another order", announce(pod("p", nil, "2001:db8::1", "1.1.1.1"), registry.EventUpdate), nil},
			// The proxy may still be known by the address that the pod lost.
			{"one address lost", announce(pod("p", nil, "2001:db8::1"), registry.EventUpdate), calls(
				"eds ns/a.com [2001:db8::1:80]", "proxy c1 1.1.1.1", "proxy c1 2001:db8::1")},
			{"both gone", announce(pod("p", nil, "2001:db8::1"), registry.EventDelete), calls("eds ns/a.com []")},
		},
		"pod of a dns service": {
			selectsDNS,
			{"add", announce(pod("p", nil, "1.1.1.1"), registry.EventAdd), calls("eds ns/a.com [1.1.1.1:80]", endpoint, "proxy c1 1.1.1.1")},
			{"delete the entry", remove(istio.ServiceEntry, "a"), calls("service ns/a.com delete", serviceA, "proxy c1 1.1.1.1")},
			{"create it again", selectsDNS.do, calls("service ns/a.com add", "eds ns/a.com [1.1.1.1:80]", serviceA, "proxy c1 1.1.1.1")},
		},
		"health": {
			selects,
			{"unknown", apply(checked(workloadEntry("w", "1.1.1.1", nil), "")), nil},
			{"healthy", apply(checked(workloadEntry("w", "1.1.1.1", nil), "True")), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"unhealthy", apply(checked(workloadEntry("w", "1.1.1.1", nil), "False")), calls("eds ns/a.com []")},
			{"healthy again", apply(checked(workloadEntry("w", "1.1.1.1", nil), "True")), calls("eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")},
			{"not checked", apply(workloadEntry("w", "1.1.1.1", nil)), nil},
		},
		"round robin": {
			{"create", apply(entry("a", roundRobin, "a.com", "e.org")), calls("service ns/a.com add", "eds ns/a.com [e.org:80]", serviceA)},
			{"a younger entry", apply(entry("b", roundRobin, "a.com", "f.org")), calls("service ns/a.com add", serviceA)},
			{"its endpoint changes", apply(entry("b", roundRobin, "a.com", "g.org")), nil},
			{"the older goes", remove(istio.ServiceEntry, "a"), calls("eds ns/a.com [g.org:80]", serviceA)},
		},
	}
}
