// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestDefectServiceChangeRepeatsEndpoints(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com"))
	s.expect("a service without endpoints", "service ns/a.com add", "config service ServiceEntry/ns/a.com")
	s.apply(entry("a", nil, "a.com", "1.1.1.1"))
	s.recorder.take()
	s.apply(entry("a", func(spec *networking.ServiceEntry) { spec.Ports[0].Protocol = "TCP" }, "a.com", "1.1.1.1"))
	s.expect("another protocol", "service ns/a.com update", "config service ServiceEntry/ns/a.com")
}

func TestDefectCallsInNoOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("gone", nil, "gone.com", "1.1.1.9"), entry("a", selecting, "a.com"))
	s.recorder.take()
	// All of it is one batch.
	if err := s.cache.Delete(istio.ServiceEntry, "gone", "ns", nil); err != nil {
		t.Fatal(err)
	}
	s.write(entry("b", nil, "b.com", "1.1.1.2"), workloadEntry("w", "1.1.1.1", nil))
	s.recorder.during = func(call string) {
		// Whatever the updater is called with can be read already.
		if s.registry.GetService("b.com") == nil || s.registry.GetService("gone.com") != nil ||
			len(s.registry.InstancesByPort(s.registry.GetService("a.com"), 0)) != 1 {
			t.Errorf("%s: reads show a former state", call)
		}
	}
	s.cache.Drain()
	s.expect("all at once",
		"service ns/b.com add", "service ns/gone.com delete",
		"eds ns/a.com [1.1.1.1:80]", "eds ns/b.com [1.1.1.2:80]",
		"config service ServiceEntry/ns/b.com ServiceEntry/ns/gone.com", "proxy c1 1.1.1.1")
}

func TestDefectUpdaterCalledWithLockHeld(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.recorder.take()
	called := 0
	s.recorder.during = func(string) {
		if called++; called > 1 {
			return
		}
		// The updater writes while it is called: that comes later.
		s.write(workloadEntry("second", "1.1.1.2", nil))
		s.podEvent(pod("third", nil, "1.1.1.3"), registry.EventAdd)
		s.registry.AppendServiceHandler(func(*registry.Service, *registry.Service, registry.Event) {})
	}
	s.apply(workloadEntry("first", "1.1.1.1", nil))
	diff(t, "first call", s.recorder.take()[0], "eds ns/a.com [1.1.1.1:80]")
	diff(t, "endpoints", brief(s.recorder.endpoints["ns/a.com"]), "[1.1.1.1:80 1.1.1.2:80 1.1.1.3:80]")
}

func TestDefectSlowUpdaterHoldsUpEverybody(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.recorder.take()
	s.recorder.during = func(call string) {
		s.recorder.during = nil
		// The updater does not return before somebody else has written and read.
		done := make(chan string)
		go func() {
			s.podEvent(pod("second", nil, "1.1.1.2"), registry.EventAdd)
			instances := s.registry.InstancesByPort(s.registry.GetService("a.com"), 0)
			done <- fmt.Sprint(len(s.registry.Services()), len(instances), len(s.targets("ns", "1.1.1.1")))
		}()
		diff(t, "reads during "+call, <-done, "1 1 1")
	}
	s.podEvent(pod("first", nil, "1.1.1.1"), registry.EventAdd)
	s.expect("a slow updater", "eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1",
		"eds ns/a.com [1.1.1.1:80 1.1.1.2:80]", "proxy c1 1.1.1.2")
}

func TestDefectUpdateOfManyWorkloadsIsManyLists(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.recorder.take()
	for i := range 50 {
		s.write(workloadEntry(fmt.Sprint("w", i), fmt.Sprintf("1.1.1.%d", i), nil))
	}
	s.cache.Drain()
	lists := 0
	for _, call := range s.recorder.take() {
		if strings.HasPrefix(call, "eds ") {
			lists++
		}
	}
	diff(t, "lists for one burst", lists, 1)
	diff(t, "endpoints", len(s.recorder.endpoints["ns/a.com"]), 50)
}

func TestDefectOneChangeConvertsTheWorld(t *testing.T) {
	t.Parallel()
	// NetworkOf is asked for every workload that is converted.
	converted := 0
	s := newSystem(t, serviceentry.Options{NetworkOf: func(string, registry.Labels) string { converted++; return "" }})
	for i := range 20 {
		app := fmt.Sprint("app", i)
		s.write(
			entry(fmt.Sprint("inline", i), nil, fmt.Sprintf("inline%d.com", i), fmt.Sprintf("1.1.2.%d", i)),
			entry(fmt.Sprint("selecting", i), selectingApp(app), fmt.Sprintf("selecting%d.com", i)),
			workloadEntry(fmt.Sprint("w", i), fmt.Sprintf("1.1.1.%d", i), map[string]string{"app": app}),
		)
	}
	s.cache.Drain()
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"a WorkloadEntry", func() { s.apply(workloadEntry("w3", "1.1.3.3", map[string]string{"app": "app3"})) }, 1},
		{"its labels", func() { s.apply(workloadEntry("w3", "1.1.3.3", map[string]string{"app": "app4"})) }, 1},
		{"a selector", func() { s.apply(entry("selecting5", selectingApp("app6"), "selecting5.com")) }, 0},
		{"an endpoint", func() { s.apply(entry("inline7", nil, "inline7.com", "1.1.4.7")) }, 1},
		{"a pod", func() { s.podEvent(pod("p", registry.Labels{"app": "app8"}, "1.1.5.8"), registry.EventAdd) }, 0},
		{"a deletion", func() { s.delete(istio.ServiceEntry, "ns", "selecting9") }, 0},
	} {
		converted = 0
		step.do()
		diff(t, "conversions for "+step.what, converted, step.want)
		for _, d := range explain.Verify(s.registry) {
			t.Errorf("after %s: %s", step.what, d)
		}
	}
}

// TestDefectWorkloadVisitsAllSelectors is not parallel because it counts
// allocations: Istio makes some for every entry that does not select the workload.
func TestDefectWorkloadVisitsAllSelectors(t *testing.T) {
	allocations := func(selectors int) float64 {
		s := newSystemWith(t, serviceentry.Options{}, func(*recorder) xdsupdate.XDSUpdater { return xdsupdate.Discard{} })
		for i := range selectors {
			s.write(entry(fmt.Sprint("e", i), selectingApp(fmt.Sprint("app", i)), fmt.Sprintf("h%d.com", i)))
		}
		s.cache.Drain()
		states := []*registry.WorkloadInstance{
			pod("p", registry.Labels{"app": "app1"}, "1.1.1.1"), pod("p", registry.Labels{"app": "app1"}, "1.1.1.2"),
		}
		next := 0
		return testing.AllocsPerRun(50, func() {
			s.podEvent(states[next%2], registry.EventUpdate)
			next++
		})
	}
	if few, many := allocations(5), allocations(500); many > few+5 {
		t.Errorf("%v allocations for one workload with 500 selectors, %v with 5", many, few)
	}
}

func TestDefectQuestionSortsAndCopiesAllServices(t *testing.T) {
	t.Parallel()
	for _, allocation := range []serviceentry.AddressAllocation{serviceentry.AllocateFromStatus, serviceentry.AllocateByHash} {
		s := newSystemWith(t, serviceentry.Options{AddressAllocation: allocation},
			func(*recorder) xdsupdate.XDSUpdater { return xdsupdate.Discard{} })
		s.apply(entry("a", nil, "a.com", "1.1.1.1"), entry("b", nil, "b.com", "1.1.1.1"))
		first := s.registry.Services()
		if again := s.registry.Services(); &first[0] != &again[0] {
			t.Errorf("allocation %d: another slice although nothing changed", allocation)
		}
		before := *first[0]
		s.apply(entry("a", nil, "a.com", "1.1.1.1"), entry("c", nil, "c.com"))
		if len(first) != 2 || !first[0].Equal(&before) {
			t.Errorf("allocation %d: what was handed out has changed", allocation)
		}
	}
}
