// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// atFirst is a cluster and two route configurations that lead to it.
func atFirst() []change {
	return []change{clusters("a"), routes("r", "x", "a"), routes("s", "y", "a"), httpListener("l", "r", "s")}
}

// TestRoutesWaitForClusters: resources that reference a new cluster come when the client has
// accepted the cluster; all others come at once.
func TestRoutesWaitForClusters(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"), routes("s", "y", "a", "z", "a"))
		check(f.t, "with a new cluster", m.news(), []string{"CDS b", "EDS b", "RDS s"})
		check(f.t, "accepted all but clusters", m.accepts("EDS", "RDS"), []string{})
		f.batch(endpoints("a", 2))
		check(f.t, "endpoints", m.news(), []string{"EDS a"})
		f.batch(routes("s", "y", "a"))
		check(f.t, "a route to a known cluster", m.news(), []string{"RDS s"})
		check(f.t, "accepted all but clusters", m.accepts("EDS", "RDS"), []string{})
		check(f.t, "accepted the cluster", m.accepts("CDS"), []string{"RDS r"})
		check(f.t, "accepted the route", m.accepts("RDS"), []string{})
	})
}

// TestClustersDoNotWait: clusters and endpoints of newer changes are not behind routes that
// wait, and those do not wait for the newer clusters.
func TestClustersDoNotWait(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"))
		check(f.t, "a new cluster", m.news(), []string{"CDS b", "EDS b"})
		m.accepts("EDS")
		f.batch(clusters("c"), routes("s", "y", "c"))
		check(f.t, "another one", m.news(), []string{"EDS c"})
		check(f.t, "accepted the first", m.accepts("CDS"), []string{"CDS c", "RDS r"})
		check(f.t, "accepted the route", m.accepts("EDS", "RDS"), []string{"EDS c"})
		check(f.t, "accepted both", m.accepts("CDS"), []string{"RDS s"})
	})
}

// overdues is an observer of responses that are answered late.
type overdues struct {
	ads.NoObserver

	mu    sync.Mutex
	types []string
}

func (o *overdues) Overdue(_ ads.Stream, typeURL string, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.types = append(o.types, short(typeURL)+" "+after.String())
}

func (o *overdues) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.types)
}

// overdue returns the types that the status of the only client reports as overdue.
func (f *fixture) overdue() []string {
	out := []string{}
	for _, p := range f.Proxies() {
		for typeURL, s := range p.Types {
			if s.Overdue {
				out = append(out, short(typeURL))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestPhaseTimeout: a client that does not answer gets the waiting resources after the time of the
// option, and the delay is reported.
func TestPhaseTimeout(t *testing.T) {
	for name, test := range map[string]struct{ option, want time.Duration }{
		"default": {0, 15 * time.Second},
		"option":  {3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &overdues{}
			phasesTest(t, ads.Options{PhaseTimeout: test.option, Observer: seen}, atFirst(), func(f *fixture, m *manual) {
				seen.types = nil
				f.batch(clusters("b"), noClusters("a"), routes("r", "x", "b"), routes("s", "y", "b"))
				check(f.t, "new", m.news(), []string{"CDS b", "EDS b"})
				time.Sleep(test.want - 1)
				check(f.t, "before the time-out", m.news(), []string{})
				check(f.t, "overdue before", f.overdue(), []string{})
				time.Sleep(2 * time.Nanosecond)
				check(f.t, "after it", m.news(), []string{"RDS r", "RDS s"})
				check(f.t, "overdue", f.overdue(), []string{"CDS", "EDS"})
				check(f.t, "observed", seen.list(), []string{"CDS " + test.want.String()})

				// It answers clusters and endpoints at last, but no routes.
				check(f.t, "after its answer", m.accepts("CDS", "EDS"), []string{})
				check(f.t, "overdue then", f.overdue(), []string{})
				time.Sleep(test.want + 1)
				check(f.t, "without an answer to routes", m.news(), []string{"CDS -a", "EDS -a"})
				check(f.t, "overdue in the end", f.overdue(), []string{"RDS"})
				check(f.t, "observed", seen.list(), []string{"CDS " + test.want.String(), "RDS " + test.want.String()})
			})
		})
	}
}

// TestNoPhases: with a negative time-out no resource waits.
func TestNoPhases(t *testing.T) {
	phasesTest(t, ads.Options{PhaseTimeout: -1}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), routes("r", "x", "b"))
		check(f.t, "new", m.news(), []string{"CDS b", "EDS b", "RDS r"})
		m.acceptsAll()
		f.batch(noClusters("a"), routes("s", "y", "b"))
		check(f.t, "gone", m.news(), []string{"CDS -a", "EDS -a", "RDS s"})
	})
}

// TestWaitAppliedWaitsForPhases: it returns when the last phase is answered.
func TestWaitAppliedWaitsForPhases(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(clusters("b"), noClusters("a"), routes("r", "x", "b"), routes("s", "y", "b"))
		returned := false
		go func() {
			if err := f.WaitApplied(f.context(), nil); err != nil {
				f.t.Error(err)
			}
			returned = true
		}()
		check(f.t, "new", m.news(), []string{"CDS b", "EDS b"})
		check(f.t, "routes", m.accepts("CDS", "EDS"), []string{"RDS r", "RDS s"})
		check(f.t, "gone", m.accepts("RDS"), []string{"CDS -a", "EDS -a"})
		if returned {
			f.t.Error("it returned before what has gone was answered")
		}
		check(f.t, "all", m.accepts("CDS", "EDS"), []string{})
		if !returned {
			f.t.Error("it waits for more than there is")
		}
	})
}

// TestRefusedClusters: a client that rejects a cluster gets the routes to it, and all other
// resources.
func TestRefusedClusters(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				f.batch(atFirst()...)
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: func(r xdstest.Response) error {
					if r.TypeURL == envoy.ClusterType && slices.Contains(r.Names(), "b") {
						return errors.New("not b")
					}
					return nil
				}})
				f.subscribe(c, envoy.ClusterType)
				f.subscribe(c, envoy.RouteType, "r", "s")
				f.await(c, envoy.RouteType, "r", "s")
				start, had := time.Now(), len(c.Responses())
				f.batch(clusters("b", "c"), routes("r", "x", "b"), routes("s", "y", "c"))
				f.waitApplied()
				got := slices.DeleteFunc(received(c, had), func(s string) bool { return !strings.HasPrefix(s, "RDS") })
				slices.Sort(got)
				check(f.t, "routes", got, []string{"RDS r", "RDS s"})
				if took := time.Since(start); took >= 15*time.Second {
					f.t.Errorf("they came after %v: they have waited for an answer", took)
				}
			})
		})
	}
}

// TestClientsByNameAreNotPhased: clients that ask for clusters by name, as gRPC does, get
// routes at once: they ask for the clusters that routes name.
func TestClientsByNameAreNotPhased(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				f.batch(atFirst()...)
				m := f.manual(delta)
				f.subscribe(m.Client, envoy.ClusterType, "a", "b")
				f.subscribe(m.Client, envoy.RouteType, "r")
				m.acceptsAll()
				f.batch(clusters("b"), routes("r", "x", "b"))
				check(f.t, "new", m.news(), []string{"CDS b", "RDS r"})
			})
		})
	}
}
