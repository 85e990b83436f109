// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// servedBy sets a cluster with the assignment of another name; the time-out is its state.
func servedBy(name, assignment string, seconds int64) change {
	c := edsCluster(name)
	c.ConnectTimeout, c.EdsClusterConfig.ServiceName = &durationpb.Duration{Seconds: seconds}, assignment
	return func(f *fixture) {
		f.t.Helper()
		f.setResource(name, c)
	}
}

// TestAssignmentsOfOtherNames: an assignment that has another name than its clusters comes again with a changed or
// further cluster, because Envoy waits for it, and goes after them.
func TestAssignmentsOfOtherNames(t *testing.T) {
	begin := []change{clusters("b"), endpoints("a", 1), servedBy("x", "a", 1), routes("r", "d", "x"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(servedBy("x", "a", 2))
		check(f.t, "changed", m.news(), []string{"CDS x", "EDS a"})
		m.acceptsAll()
		f.batch(servedBy("x", "a", 3), servedBy("y", "a", 1))
		check(f.t, "with another", m.news(), []string{"CDS x", "CDS y", "EDS a"})
		m.acceptsAll()
		f.batch(without(envoy.ClusterType, "x", "y"), without(envoy.LoadAssignmentType, "a"), routes("r", "d", "b"))
		check(f.t, "removed", m.news(), []string{"RDS r"})
		check(f.t, "accepted routes", m.accepts("RDS"), []string{"CDS -x", "CDS -y", "EDS -a"})
	})
}

// TestAssignmentsOfOtherNamesAfterReconnect: the same for a client that comes back to a changed cluster.
func TestAssignmentsOfOtherNamesAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		f.batch(endpoints("a", 1), servedBy("x", "a", 1))
		c := f.client(xdstest.ClientOptions{Delta: true, Answer: func(xdstest.Response) error { return nil }})
		f.subscribe(c, envoy.ClusterType)
		f.subscribe(c, envoy.LoadAssignmentType, "a")
		f.await(c, envoy.LoadAssignmentType, "a")
		f.waitApplied()
		c.Close()
		f.batch(servedBy("x", "a", 2))
		since := len(c.Responses())
		if err := c.Connect(f.context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		f.waitApplied()
		check(t, "responses", received(c, since), []string{"CDS x", "EDS a"})
	})
}

// TestAssignmentsOfOtherNamesThatHaveGone: a SotW client gets an empty assignment if the clusters that it asks it for
// have gone meanwhile.
func TestAssignmentsOfOtherNamesThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		f.batch(atFirst()...)
		m := f.manual(false).subscribed([]string{"a"}, []string{"r"})
		f.batch(endpoints("e", 1), servedBy("x", "e", 1))
		check(f.t, "new", m.news(), []string{"CDS x"})
		f.batch(without(envoy.ClusterType, "x"), without(envoy.LoadAssignmentType, "e"))
		f.subscribe(m.Client, envoy.LoadAssignmentType, "e", "never")
		check(f.t, "asked for", m.news(), []string{"EDS -e"})
	})
}
