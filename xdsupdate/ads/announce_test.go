// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// announcesTest runs a test for both protocols: a server with two clusters, and a gRPC client
// whose routes lead to them, which has accepted all of it.
func announcesTest(t *testing.T, o ads.Options, test func(f *fixture, m *manual)) {
	t.Helper()
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, o, nil)
				f.batch(clusters("a", "z"), routes("r", "x", "a"), routes("s", "x", "z"))
				n := node("a", "shop")
				n.UserAgentName = "gRPC Go"
				m := f.manualOf(n, delta)
				f.subscribe(m.Client, envoy.RouteType, "r", "s")
				f.subscribe(m.Client, envoy.ClusterType, "a", "z")
				f.subscribe(m.Client, envoy.LoadAssignmentType, "a", "z")
				m.acceptsAll()
				test(f, m)
			})
		})
	}
}

// asksFor subscribes to the cluster of a name, accepts it, and does the same with its assignment.
// It returns the resources that the client is sent then.
func (m *manual) asksFor(name string) []string {
	m.f.t.Helper()
	m.f.subscribe(m.Client, envoy.ClusterType, name)
	m.news()
	m.accepts("CDS")
	m.f.subscribe(m.Client, envoy.LoadAssignmentType, name)
	check(m.f.t, "assignment of "+name, m.news(), []string{"EDS " + name})
	return m.accepts("EDS")
}

// gives up unsubscribes from a cluster and its assignment.
func (m *manual) givesUp(name string) []string {
	m.f.t.Helper()
	for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
		if err := m.Unsubscribe(typeURL, name); err != nil {
			m.f.t.Fatal(err)
		}
	}
	return m.news()
}

// calls returns the clusters that a route configuration sends calls to, and behind a bar the
// clusters of routes that match no call.
func (m *manual) calls(name string) string {
	m.f.t.Helper()
	message, err := m.State().Resources(envoy.RouteType)[name].Message()
	if err != nil {
		m.f.t.Fatal(err)
	}
	var to, named []string
	for _, host := range message.(*routev3.RouteConfiguration).GetVirtualHosts() {
		for _, r := range host.GetRoutes() {
			if len(r.GetMatch().GetHeaders()) > 0 {
				named = append(named, r.GetRoute().GetCluster())
			} else {
				to = append(to, r.GetRoute().GetCluster())
			}
		}
	}
	return strings.Join(append(append(to, "|"), named...), " ")
}

// TestAnnounced: routes that lead to a new cluster come when the client, which learns of it through
// routes that match no call, has accepted the cluster and its endpoints. Removed clusters keep
// their endpoints until the client has unsubscribed.
func TestAnnounced(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		applied := make(chan error, 1)
		f.batch(clusters("b"), noClusters("a"), routes("r", "x", "b"))
		go func() { applied <- f.WaitApplied(f.context(), nil) }()
		check(f.t, "new", m.news(), []string{"RDS r"})
		check(f.t, "accepted what announces", m.accepts("RDS"), []string{})
		check(f.t, "announced", m.calls("r"), "a | b")
		f.subscribe(m.Client, envoy.ClusterType, "b")
		check(f.t, "asked for the cluster", m.news(), []string{"CDS b"})
		check(f.t, "accepted it", m.accepts("CDS"), []string{})
		f.subscribe(m.Client, envoy.LoadAssignmentType, "b")
		check(f.t, "asked for its assignment", m.news(), []string{"EDS b"})
		check(f.t, "accepted it", m.accepts("EDS"), []string{"RDS r"})
		check(f.t, "accepted the routes", m.accepts("RDS"), []string{})
		check(f.t, "routes", m.calls("r"), "b |")
		if len(applied) > 0 {
			f.t.Error("it is applied before the client has given up what has gone")
		}
		check(f.t, "given up", m.givesUp("a"), []string{})
		m.acceptsAll()
		if err := <-applied; err != nil {
			f.t.Error(err)
		}
	})
}

// TestNotGivenUp: a client that keeps asking for a cluster that has gone learns that a second
// after it has accepted the routes that lead elsewhere.
func TestNotGivenUp(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(noClusters("a"), routes("r", "x", "z"))
		m.news()
		check(f.t, "accepted what announces a cluster that it has", m.accepts("RDS"), []string{"RDS r"})
		time.Sleep(2 * time.Second)
		check(f.t, "without an answer", m.news(), []string{})
		check(f.t, "accepted the routes", m.accepts("RDS"), []string{})
		time.Sleep(time.Second - 1)
		check(f.t, "before a second", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after it", m.news(), []string{"EDS -a"})
	})
}

// TestLeftButNamed: clusters that some routes leave while others keep them, and clusters that no
// routes leave, change at once.
func TestLeftButNamed(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(endpoints("z", 2), routes("r", "x", "z"))
		check(f.t, "moved", m.news(), []string{"EDS z", "RDS r"})
		m.acceptsAll()
		f.batch(routes("r", "x", "z"), endpoints("z", 3), endpoints("a", 2))
		check(f.t, "the cluster that was left waits", m.news(), []string{"EDS z"})
		m.acceptsAll()
		f.batch(routes("r", "x", "a"))
		m.acceptsAll()
		check(f.t, "back again", m.calls("r"), "a |")
		f.batch(noClusters("a"))
		check(f.t, "gone", m.news(), []string{"EDS -a"})
	})
}

// TestNothingToAnnounce: routes to clusters that they led to, the first routes, and those to
// clusters that the client need not know, wait for nothing.
func TestNothingToAnnounce(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(routes("r", "y", "a"))
		check(f.t, "the same cluster", m.news(), []string{"RDS r"})
		m.acceptsAll()
		f.batch(routes("t", "x", "new"), clusters("new"))
		f.subscribe(m.Client, envoy.RouteType, "t")
		check(f.t, "first routes", m.news(), []string{"RDS t"})
		check(f.t, "accepted", m.accepts("RDS"), []string{})
		check(f.t, "named", m.calls("t"), "new |")
	})
}

// TestAnnouncedAlone: routes without new clusters do not wait for announced ones.
func TestAnnouncedAlone(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"), routes("s", "y", "z"))
		check(f.t, "new", m.news(), []string{"RDS r", "RDS s"})
		m.accepts("RDS")
		check(f.t, "announced", m.calls("r"), "a | b")
		f.batch(routes("s", "x", "z"))
		check(f.t, "other routes", m.news(), []string{"RDS s"})
		m.accepts("RDS")
		check(f.t, "asked", m.asksFor("b"), []string{"RDS r"})
	})
}

// TestAnnouncedAnew: routes that change while they are announced are announced in their present
// state, without clusters that they have stopped leading to.
func TestAnnouncedAnew(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(clusters("b", "c"), routes("r", "x", "b"))
		m.news()
		m.accepts("RDS")
		f.batch(routes("r", "x", "c"))
		check(f.t, "another cluster", m.news(), []string{"RDS r"})
		m.accepts("RDS")
		check(f.t, "announced", m.calls("r"), "a | c")
		f.batch(routes("r", "y", "c"))
		check(f.t, "other routes there", m.news(), []string{})
		check(f.t, "asked", m.asksFor("c"), []string{"RDS r"})
		m.accepts("RDS")
		check(f.t, "routes", m.calls("r"), "c |")

		f.batch(routes("r", "x", "b"))
		m.news()
		m.accepts("RDS")
		f.batch(routes("r", "x", "c"))
		check(f.t, "taken back", m.news(), []string{"RDS r"})
		m.accepts("RDS")
		check(f.t, "as before", m.calls("r"), "c |")
	})
}

// TestAnnouncedButMissing: routes to a cluster that does not exist, or one without an
// assignment, come when the client has asked for it.
func TestAnnouncedButMissing(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(routes("r", "x", "missing"))
		check(f.t, "new", m.news(), []string{"RDS r"})
		check(f.t, "accepted", m.accepts("RDS"), []string{})
		f.subscribe(m.Client, envoy.ClusterType, "missing")
		check(f.t, "asked", slices.Contains(m.news(), "RDS r"), true)
		m.acceptsAll()
		f.batch(clusters("bare"), without(envoy.LoadAssignmentType, "bare"), routes("r", "x", "bare"))
		m.acceptsAll()
		f.subscribe(m.Client, envoy.ClusterType, "bare")
		check(f.t, "asked for the cluster", m.news(), []string{"CDS bare"})
		check(f.t, "accepted it", m.accepts("CDS"), []string{})
		f.subscribe(m.Client, envoy.LoadAssignmentType, "bare")
		check(f.t, "asked for what does not exist", m.news(), []string{"RDS r"})
	})
}

// TestAnnouncedInVain: a client that has accepted an announcement, and does not subscribe to the
// cluster, is sent the routes after a second.
func TestAnnouncedInVain(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"))
		m.news()
		time.Sleep(5 * time.Second)
		check(f.t, "before it has accepted", m.accepts("RDS"), []string{})
		time.Sleep(time.Second - 1)
		check(f.t, "before a second", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after it", m.news(), []string{"RDS r"})
		m.accepts("RDS")
		check(f.t, "routes", m.calls("r"), "b |")
	})
}

// TestAnnouncedUnanswered: a client that does not answer an announcement, or clusters, or
// assignments, is sent the routes after the time-out, as soon as it can be.
func TestAnnouncedUnanswered(t *testing.T) {
	for i, last := range []string{"RDS", "CDS", "EDS"} {
		t.Run(last, func(t *testing.T) {
			seen := &overdues{}
			announcesTest(t, ads.Options{PhaseTimeout: 3 * time.Second, Observer: seen}, func(f *fixture, m *manual) {
				seen.types = nil
				f.batch(clusters("b"), routes("r", "x", "b"))
				m.news()
				time.Sleep(time.Millisecond)
				want := []string{}
				if i > 0 {
					m.accepts("RDS")
					f.subscribe(m.Client, envoy.ClusterType, "b")
					m.news()
					want = []string{"RDS r"}
				}
				if i > 1 {
					m.accepts("CDS")
					f.subscribe(m.Client, envoy.LoadAssignmentType, "b")
					m.news()
				}
				time.Sleep(3*time.Second - 2*time.Millisecond)
				check(f.t, "before the time-out", m.news(), []string{})
				time.Sleep(2 * time.Millisecond)
				if last == "RDS" && !m.full {
					want = []string{} // it has not asked for more
				}
				check(f.t, "after it", m.news(), want)
				check(f.t, "observed", seen.list(), []string{last + " 3s"})
				check(f.t, "overdue", f.overdue(), []string{last})
				m.acceptsAll()
				check(f.t, "routes in the end", m.calls("r"), "b |")
			})
		})
	}
}

// TestNothingAnnounced: with a negative time-out routes come at once, and removals after them.
func TestNothingAnnounced(t *testing.T) {
	announcesTest(t, ads.Options{PhaseTimeout: -1}, func(f *fixture, m *manual) {
		f.batch(clusters("b"), noClusters("a"), routes("r", "x", "b"))
		check(f.t, "new", m.news(), []string{"EDS -a", "RDS r"})
		m.accepts("RDS")
		check(f.t, "routes", m.calls("r"), "b |")
	})
}

// TestManyClustersAnnounced: routes are not announced if the response would be too large.
func TestManyClustersAnnounced(t *testing.T) {
	announcesTest(t, ads.Options{}, func(f *fixture, m *manual) {
		pairs := make([]string, 0, 2000)
		for i := range 1000 {
			pairs = append(pairs, fmt.Sprint("domain-", i), fmt.Sprint("cluster-", i))
		}
		// A thousand routes behind those of each of a thousand virtual hosts are too much.
		f.batch(routes("r", append(pairs, "x", "a")...))
		m.acceptsAll()
		time.Sleep(time.Second)
		m.acceptsAll()
		for i := range pairs {
			pairs[i] += "-new"
		}
		f.batch(routes("r", pairs...))
		m.news()
		m.accepts("RDS")
		if got := m.calls("r"); !strings.HasSuffix(got, "-999-new |") {
			f.t.Errorf("calls go to %.200s", got)
		}
	})
}
