// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// example is a change with resources that one rule holds back.
type example struct {
	grpc   bool
	begin  []*resource.State
	delay  time.Duration // Client.RemovalDelay
	before func(s *scene)
	change []*resource.State
	after  func(s *scene) // the change was sent
	kept   string         // the resources that are held back
	lift   func(s *scene) // ends the reason to wait
}

func acceptAll(s *scene) { s.answer(s.Types...) }

// threadsSwitch has the client take listeners, all its threads included.
func threadsSwitch(s *scene) {
	s.answer(s.Listeners)
	s.pass(switchTime)
}

// begin returns the resources at the beginning of most examples.
func begin() []*resource.State {
	return []*resource.State{cluster("a", 1), assignment("a", 1), route("r", "x a", "y a"), listener("l", 1, "r")}
}

func examples() map[string]example {
	named := func() []*resource.State {
		return []*resource.State{cluster("a", 1), assignment("a", 1), cluster("b", 1), assignment("b", 1), route("r", "x a")}
	}
	noA := []*resource.State{noMore(envoy.ClusterType, "a"), noMore(envoy.LoadAssignmentType, "a"), cluster("b", 1), assignment("b", 1), route("r", "x b", "y b")}
	return map[string]example{
		"routes stay while the client rejects the stricter listener in front of them": {
			begin: begin(),
			before: func(s *scene) {
				s.Listeners.Unaccepted = map[string]Unaccepted{"l": {Accepted: listener("l", 1, "r"), Refused: listener("l", 2, "r")}}
				s.Listeners.target().snapshot = s.Listeners.Has.WithAll([]*resource.State{listener("l", 2, "r")})
				s.Listeners.Has = s.Listeners.target().snapshot
			},
			change: []*resource.State{route("r", "x a", "y a", "z a")},
			kept:   "RDS r",
			lift:   func(s *scene) { s.Listeners.Unaccepted = nil },
		},
		"clusters come before the listeners and routes that lead to them": {
			begin: begin(), change: []*resource.State{cluster("b", 1), assignment("b", 1), route("r", "x b", "y b")},
			kept: "RDS r", lift: acceptAll,
		},
		"routes come before the listeners that use them": {
			begin:  append(begin(), route("s", "z a"), listener("k", 1, "s")),
			change: []*resource.State{cluster("b", 1), assignment("b", 1), route("s", "z b"), listener("l", 1, "r", "s")},
			kept:   "LDS l", lift: acceptAll,
		},
		"listeners that take domains over come before routes give them up": {
			begin: append(begin(), route("s", "z a")), change: []*resource.State{listener("k", 1, "s"), route("r", "x a")},
			kept: "RDS r", lift: threadsSwitch,
		},
		"stricter listeners come before the routes behind them": {
			begin: begin(), change: []*resource.State{listener("l", 2, "r"), route("r", "x a", "y a", "z a")},
			kept: "RDS r", lift: threadsSwitch,
		},
		"clusters are announced before routes lead to them": {
			grpc: true, begin: named(), change: []*resource.State{cluster("c", 1), assignment("c", 1), route("r", "x c")},
			after: func(s *scene) { s.answer(s.Clusters, s.Assignments) }, // else two rules would hold
			kept:  "RDS r", lift: acceptAll,
		},
		"clusters stay as they are until calls have left them": {
			grpc: true, begin: named(), change: []*resource.State{route("r", "x b"), assignment("a", 2)},
			kept: "EDS a",
			lift: func(s *scene) { acceptAll(s); s.plan(); acceptAll(s); s.pass(leaveWait) },
		},
		"clusters stay while a client that has come back may subscribe to listeners and routes": {
			begin: []*resource.State{cluster("a", 1)},
			before: func(s *scene) {
				s.Clusters.Resumed, s.Memory.returned = true, time.Time{}
				s.Routes.target().scope = Nothing
			},
			change: []*resource.State{noMore(envoy.ClusterType, "a")},
			kept:   "CDS -a", lift: func(s *scene) { s.pass(askWait) },
		},
		"clusters stay until listeners and routes do without them": {
			begin: begin(), change: noA, after: func(s *scene) { s.answer(s.Clusters, s.Assignments) },
			kept: "CDS -a", lift: acceptAll,
		},
		"clusters that go later belong to a later removal": {
			begin: append(begin(), cluster("b", 1), assignment("b", 1), cluster("c", 1), assignment("c", 1)),
			change: []*resource.State{
				noMore(envoy.ClusterType, "b"), noMore(envoy.LoadAssignmentType, "b"), route("r", "x a", "y c"),
			},
			after: func(s *scene) { // another change, before routes are accepted
				s.want(noMore(envoy.ClusterType, "c"), noMore(envoy.LoadAssignmentType, "c"), route("r", "x a", "y a"))
				s.plan()
				s.answer(s.Routes) // the routes of the first change
			},
			kept: "CDS -c", lift: acceptAll,
		},
		"clusters stay while connections drain": {
			delay: time.Minute, begin: append(begin(), listener("t", 0), cluster("b", 1), assignment("b", 1)),
			before: func(s *scene) { s.Memory.drain([]uint64{hashOf("b")}, s.now.Time, time.Minute) },
			change: []*resource.State{noMore(envoy.ClusterType, "b")},
			after:  acceptAll,
			kept:   "CDS -b", lift: func(s *scene) { s.pass(time.Minute) },
		},
		"assignments go after their clusters": {
			begin: append(begin(), cluster("b", 1), assignment("b", 1)),
			change: []*resource.State{
				noMore(envoy.ClusterType, "b"), noMore(envoy.LoadAssignmentType, "b"), route("r", "x a", "y a", "z a"),
			},
			kept: "EDS -b", lift: acceptAll,
		},
	}
}

// TestRules: each rule holds resources back until the reason is gone, and no other rule does.
func TestRules(t *testing.T) {
	all, known := examples(), 0
	for i, r := range rules {
		known++
		t.Run(r.name, func(t *testing.T) {
			testRule(t, all[r.name], func() { rules[i].holds = func(*facts, *resource.State) bool { return false } }, func() { rules[i] = r })
		})
	}
	for i, r := range removalRules {
		known++
		t.Run(r.name, func(t *testing.T) {
			testRule(t, all[r.name], func() { removalRules[i].all, removalRules[i].each = nil, nil }, func() { removalRules[i] = r })
		})
	}
	if known != len(all) {
		t.Errorf("there are examples of %d rules, of %d", len(all), known)
	}
}

func testRule(t *testing.T, e example, without, with func()) {
	t.Helper()
	run := func(lift bool) bool {
		s := newScene(true, e.grpc)
		s.RemovalDelay = e.delay
		s.want(e.begin...)
		s.settle()
		if e.before != nil {
			e.before(s)
		}
		s.want(e.change...)
		sent := s.plan()
		if e.after != nil {
			e.after(s)
			sent = append(sent, s.plan()...)
		}
		if e.grpc && e.kept == "RDS r" { // announcements are of the same name
			return s.Routes.Has.Find("r") == s.Routes.Snapshot().Find("r") || lift && s.lifts(e)
		}
		return slices.Contains(sent, e.kept) || lift && s.lifts(e)
	}
	if run(false) {
		t.Errorf("%s is sent at once", e.kept)
	}
	if !run(true) {
		t.Errorf("%s is not sent in the end", e.kept)
	}
	without()
	defer with()
	if !run(false) {
		t.Errorf("without the rule %s is not sent either", e.kept)
	}
}

// lifts reports whether the resources are sent after the reason has ended.
func (s *scene) lifts(e example) bool {
	e.lift(s)
	sent := s.plan()
	for range 3 {
		s.answer(s.Types...)
		sent = append(sent, s.plan()...)
	}
	return slices.Contains(sent, e.kept)
}

// TestHeldRoutes: routes that wait for a cluster come when the client can use it though newer routes wait for another
// one, unless they were to come behind a stricter listener than the client has.
func TestHeldRoutes(t *testing.T) {
	for want, denied := range map[bool]int{true: 1, false: 2} {
		s := newScene(true, false)
		s.want(begin()...)
		s.settle()
		s.Listeners.Open = false // the client has not answered others
		held := route("r", "x b", "y b")
		s.want(cluster("b", 1), assignment("b", 1), held, listener("l", denied, "r"))
		s.plan()
		s.want(cluster("c", 1), assignment("c", 1), route("r", "x c", "y c"), listener("l", 1, "r"))
		s.plan()
		s.answer(s.Clusters, s.Assignments)
		s.plan()
		if got := s.Routes.Has.Find("r") == held; got != want {
			t.Errorf("behind a listener of strictness %d they come: %t", denied, got)
		}
	}
}

// TestAssignmentsOfUnknownClusters: while it is not known which clusters a client is to have, its
// assignments stay.
func TestAssignmentsOfUnknownClusters(t *testing.T) {
	s := newScene(true, false)
	s.want(append(begin(), cluster("b", 1), assignment("b", 1))...)
	s.settle()
	s.Clusters.target().unknown = true
	s.want(noMore(envoy.ClusterType, "b"), noMore(envoy.LoadAssignmentType, "b"))
	if sent := s.plan(); len(sent) > 0 {
		t.Errorf("%v is sent", sent)
	}
	s.Clusters.target().unknown = false
	s.settle()
	if s.Assignments.Has.Find("b") != nil {
		t.Error("the assignment is left in the end")
	}
}

// TestRoutesOfUnknownListeners: while it is not known which listeners a client is to have, its routes
// stay, because the listeners may become stricter.
func TestRoutesOfUnknownListeners(t *testing.T) {
	s := newScene(true, false)
	s.want(begin()...)
	s.settle()
	s.Listeners.target().unknown = true
	s.want(listener("l", 2, "r"), route("r", "x a", "y a", "z a"))
	if sent := s.plan(); len(sent) > 0 {
		t.Errorf("%v is sent", sent)
	}
	s.Listeners.target().unknown = false
	s.settle()
	if s.Routes.Has != s.Routes.Snapshot() {
		t.Error("the routes are not sent in the end")
	}
}
