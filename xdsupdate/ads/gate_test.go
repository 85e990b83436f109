// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestDomainsMove: a route configuration gives up a domain when the client has accepted
// the listener that takes it elsewhere, and the routes that the listener names.
func TestDomainsMove(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a", "y", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(httpListener("l", "r", "new"), routes("r", "x", "a"), routes("new", "y", "a"))
		check(f.t, "new", m.news(), []string{"LDS l"})
		f.subscribe(m.Client, envoy.RouteType, "new")
		check(f.t, "asked for its routes", m.news(), []string{"RDS new"})
		check(f.t, "accepted the listener", m.accepts("LDS"), []string{})
		check(f.t, "accepted its routes", m.accepts("RDS"), []string{})
		threadsSwitch(f, m, "RDS r")
	})
}

// threadsSwitch: something comes when all threads of the client have its listeners.
func threadsSwitch(f *fixture, m *manual, comes string) {
	f.t.Helper()
	time.Sleep(50*time.Millisecond - 1)
	check(f.t, "before its threads have the listener", m.news(), []string{})
	time.Sleep(2 * time.Nanosecond)
	check(f.t, "when its threads have the listener", m.news(), []string{comes})
}

// TestDomainsMoveInAnyOrder: the routes may be accepted before the listener.
func TestDomainsMoveInAnyOrder(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a", "y", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(httpListener("l", "r", "new"), routes("r", "x", "a"), routes("new", "y", "a"))
		check(f.t, "new", m.news(), []string{"LDS l"})
		f.subscribe(m.Client, envoy.RouteType, "new")
		check(f.t, "asked for its routes", m.news(), []string{"RDS new"})
		check(f.t, "accepted its routes", m.accepts("RDS"), []string{})
		check(f.t, "accepted the listener", m.accepts("LDS"), []string{})
		threadsSwitch(f, m, "RDS r")
	})
}

// TestDomainsOfUnknownRoutes: a listener whose routes the client never asks for holds
// others no longer than the time-out.
func TestDomainsOfUnknownRoutes(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a", "y", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(httpListener("l", "r", "new"), routes("r", "x", "a"))
		check(f.t, "new", m.news(), []string{"LDS l"})
		check(f.t, "accepted the listener", m.accepts("LDS"), []string{})
		time.Sleep(15*time.Second - 1)
		check(f.t, "before the time-out", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after it", m.news(), []string{"RDS r"})
	})
}

// TestDomainsOfRoutesNoLongerNeeded: routes that a listener named for a moment, and that the
// client never asks for, hold nothing once it is sent the listener without them.
func TestDomainsOfRoutesNoLongerNeeded(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a", "y", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(httpListener("l", "r", "new"), routes("r", "x", "a"))
		check(f.t, "new", m.news(), []string{"LDS l"})
		f.batch(httpListener("l", "r"))
		check(f.t, "accepted the listener", m.accepts("LDS"), []string{"LDS l"})
		check(f.t, "accepted the next", m.accepts("LDS"), []string{})
		threadsSwitch(f, m, "RDS r")
	})
}

// TestDomainsThatGo: without a change of listeners no resource waits.
func TestDomainsThatGo(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a", "y", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(routes("r", "x", "a"))
		check(f.t, "new", m.news(), []string{"RDS r"})
	})
}

// TestListenersWaitForRoutes: a listener that names routes which wait for a cluster comes
// with them, when the client has accepted the cluster.
func TestListenersWaitForRoutes(t *testing.T) {
	begin := []change{clusters("a"), routes("r", "x", "a"), routes("s", "y", "a"), httpListener("l", "r"), httpListener("k", "s")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("s", "y", "a", "z", "b"), httpListener("l", "s"), httpListener("k", "s", "r"), tcpListener("t", "b"), tcpListener("u", "a"))
		check(f.t, "new", m.news(), []string{"CDS b", "EDS b", "LDS u"})
		m.accepts("EDS", "LDS")
		// Routes are sent before the listeners that are to find them.
		check(f.t, "accepted the cluster", m.accepts("CDS"), []string{"LDS k", "LDS l", "LDS t", "RDS s"})
		all := m.Responses()
		check(f.t, "the first", short(all[len(all)-2].TypeURL), "RDS")
	})
}

// TestHeldRoutesWaitOnceMore: routes that were held for a cluster wait on for another one that
// they name, if it has come meanwhile.
func TestHeldRoutesWaitOnceMore(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b", "y", "c"))
		check(f.t, "a new cluster", m.news(), []string{"CDS b", "EDS b"})
		m.accepts("EDS")
		f.batch(clusters("c"))
		check(f.t, "the other one", m.news(), []string{"EDS c"})
		check(f.t, "accepted the first", m.accepts("CDS", "EDS"), []string{"CDS c", "EDS c"})
		check(f.t, "accepted both", slices.Contains(m.accepts("CDS", "EDS"), "RDS r"), true)
	})
}

// TestRoutesProgress: when there is always a newer cluster that the client has not
// accepted, routes get there all the same: to clusters that it has accepted.
func TestRoutesProgress(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		moved := 0
		for i := range 10 {
			name := fmt.Sprint("next-", i)
			f.batch(clusters(name), routes("r", "x", name))
			m.news()
			if i == 0 {
				continue // an answer is always behind
			}
			accepted := slices.Collect(maps.Keys(m.sent[envoy.ClusterType]))
			if slices.Contains(append(m.accepts("CDS", "EDS"), m.accepts("RDS")...), "RDS r") {
				moved++
			}
			if to := m.leadsTo("r"); !slices.Contains(accepted, to) {
				f.t.Errorf("step %d: the route leads to %s, accepted are %q", i, to, accepted)
			}
		}
		if moved < 5 {
			f.t.Errorf("the route has moved %d times in 10 steps", moved)
		}
		m.acceptsAll()
		check(f.t, "in the end", m.leadsTo("r"), "next-9")
	})
}

// TestRoutesNeverLeadToWhatHasGone: a state that waits is not sent when a cluster of it
// has gone meanwhile.
func TestRoutesNeverLeadToWhatHasGone(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"))
		check(f.t, "new", m.news(), []string{"CDS b", "EDS b"})
		m.accepts("EDS")
		f.batch(clusters("c"), noClusters("b"), routes("r", "x", "c"))
		check(f.t, "another one", m.news(), []string{"EDS c"})
		if got := m.accepts("CDS", "EDS"); slices.Contains(got, "RDS r") {
			f.t.Errorf("the route leads to %s, which has gone: %q", m.leadsTo("r"), got)
		}
		m.acceptsAll()
		check(f.t, "in the end", m.leadsTo("r"), "c")
		for _, r := range m.Responses() {
			if leads(f.t, r, "r") == "b" {
				f.t.Error("the route has led to what has gone")
			}
		}
	})
}

// leadsTo returns the cluster of the first route that the client was last sent.
func (m *manual) leadsTo(name string) string {
	m.f.t.Helper()
	for _, r := range slices.Backward(m.Responses()) {
		if to := leads(m.f.t, r, name); to != "" {
			return to
		}
	}
	return ""
}

// leads returns the cluster of the first route of a route configuration in a response; "":
// it is not in it.
func leads(tb testing.TB, r xdstest.Response, name string) string {
	tb.Helper()
	for _, res := range r.Resources {
		if r.TypeURL != envoy.RouteType || res.Name != name {
			continue
		}
		message, err := res.Message()
		if err != nil {
			tb.Fatal(err)
		}
		return message.(*routev3.RouteConfiguration).GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster()
	}
	return ""
}

// TestFirstListenersAreComplete: a SotW client that may have listeners of a stream before
// is not sent some of them alone, or it would close the others until it has the clusters.
func TestFirstListenersAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		f.batch(clusters("a"), httpListener("l", "r"), tcpListener("t", "a"))
		m := f.manual(false)
		f.subscribe(m.Client, envoy.ClusterType)
		f.subscribe(m.Client, envoy.ListenerType)
		check(t, "before clusters are accepted", m.news(), []string{"CDS a"})
		check(t, "then", m.accepts("CDS"), []string{"LDS l", "LDS t"})
	})
}
