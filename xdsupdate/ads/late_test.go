// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// dnsCluster sets a cluster whose addresses its clients resolve.
func dnsCluster(name string) change {
	return func(f *fixture) {
		f.t.Helper()
		f.setResource(name, &clusterv3.Cluster{
			Name: name, ConnectTimeout: durationpb.New(time.Second), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		})
	}
}

// TestClustersBesideALateAnswer: a client that cannot resolve a cluster does not answer. It gets
// newer clusters after half a second, and routes to them when it has accepted their endpoints.
func TestClustersBesideALateAnswer(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(dnsCluster("dns"))
		check(f.t, "the cluster", m.news(), []string{"CDS dns"})
		time.Sleep(10 * time.Millisecond)
		f.batch(clusters("b"), routes("r", "x", "b"))
		check(f.t, "the endpoints of another", m.news(), []string{"EDS b"})
		check(f.t, "accepted", m.accepts("EDS"), []string{})
		time.Sleep(490*time.Millisecond - 1)
		check(f.t, "before half a second", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after it", m.news(), []string{"CDS b", "EDS b"})
		check(f.t, "accepted the endpoints", m.accepts("EDS"), []string{"RDS r"})
		m.accepts("RDS")
		f.batch(clusters("c"), noClusters("a"), routes("r", "x", "c"), routes("s", "y", "c"))
		check(f.t, "the endpoints of a third", m.news(), []string{"EDS c"})
		m.accepts("EDS")
		time.Sleep(500 * time.Millisecond)
		check(f.t, "half a second later", m.news(), []string{"CDS c", "EDS c"})
		check(f.t, "accepted its endpoints", m.accepts("EDS"), []string{"RDS r", "RDS s"})
		check(f.t, "accepted routes", m.accepts("RDS"), []string{})
		check(f.t, "answered clusters", m.accepts("CDS"), []string{"CDS -a", "EDS -a"})
	})
}

// TestUnresolvedClusterOfOneRoute: a route to a cluster that cannot be resolved delays the other
// routes of its route configuration by two seconds.
func TestUnresolvedClusterOfOneRoute(t *testing.T) {
	phasesTest(t, ads.Options{}, atFirst(), func(f *fixture, m *manual) {
		f.batch(dnsCluster("dns"), clusters("b"), routes("r", "x", "dns", "y", "b"), routes("s", "y", "b"))
		check(f.t, "clusters", m.news(), []string{"CDS b", "CDS dns", "EDS b"})
		check(f.t, "accepted the endpoints", m.accepts("EDS"), []string{})
		time.Sleep(500 * time.Millisecond)
		check(f.t, "routes to the other cluster", m.news(), []string{"RDS s"})
		m.accepts("RDS")
		time.Sleep(1500*time.Millisecond - 1)
		check(f.t, "before two seconds", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after them", m.news(), []string{"RDS r"})
	})
}
