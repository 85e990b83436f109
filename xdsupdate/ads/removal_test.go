// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestRemovalsWait: clusters and their assignments go when listeners and routes that do
// without them are accepted.
func TestRemovalsWait(t *testing.T) {
	begin := []change{clusters("a", "b", "c"), routes("r", "x", "a"), tcpListener("l", "b")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(noClusters("a", "b"), routes("r", "x", "c"), tcpListener("l", "c"))
		check(f.t, "new", m.news(), []string{"LDS l", "RDS r"})
		check(f.t, "accepted routes", m.accepts("RDS"), []string{})
		check(f.t, "accepted listeners", m.accepts("LDS"), []string{"CDS -a", "CDS -b", "EDS -a", "EDS -b"})
	})
}

// TestLaterRemovalsWaitForLaterRoutes: a cluster that is removed later does not belong to an
// earlier removal.
func TestLaterRemovalsWaitForLaterRoutes(t *testing.T) {
	begin := []change{clusters("a", "b", "c"), routes("r", "x", "a"), routes("s", "y", "b"), httpListener("l", "r", "s")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(noClusters("a"), routes("r", "x", "c"))
		check(f.t, "the first", m.news(), []string{"RDS r"})
		f.batch(noClusters("b"), routes("s", "y", "c"))
		check(f.t, "the second", m.news(), []string{})
		check(f.t, "accepted the first", m.accepts("RDS"), []string{"CDS -a", "EDS -a", "RDS s"})
		check(f.t, "accepted the removal", m.accepts("CDS", "EDS"), []string{})
		check(f.t, "accepted the second", m.accepts("RDS"), []string{"CDS -b", "EDS -b"})
	})
}

// TestRemovalEndsWhenTheClusterComesBack: a cluster that comes back while its removal waits stays.
func TestRemovalEndsWhenTheClusterComesBack(t *testing.T) {
	begin := []change{clusters("a", "b"), routes("r", "x", "a"), httpListener("l", "r")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(noClusters("a"), routes("r", "x", "b"))
		check(f.t, "new", m.news(), []string{"RDS r"})
		f.batch(clusters("a"))
		check(f.t, "it is back", m.news(), []string{})
		check(f.t, "accepted", m.accepts("RDS"), []string{})
		time.Sleep(30 * time.Second)
		check(f.t, "later", m.news(), []string{})
	})
}

// TestRemovalOfClustersThatCameBack: a cluster that comes back and is removed again while a removal
// waits does not belong to it, because newer routes reference the cluster.
func TestRemovalOfClustersThatCameBack(t *testing.T) {
	begin := []change{clusters("a", "b", "c"), routes("r", "x", "a"), routes("s", "y", "c"), tcpListener("l", "b")}
	phasesTest(t, ads.Options{}, begin, func(f *fixture, m *manual) {
		f.batch(noClusters("a", "b"), routes("r", "x", "c"), tcpListener("l", "c"))
		check(f.t, "new", m.news(), []string{"LDS l", "RDS r"})
		check(f.t, "accepted routes", m.accepts("RDS"), []string{})
		f.batch(clusters("a"), routes("s", "y", "a"))
		check(f.t, "it is back", m.news(), []string{"RDS s"})
		check(f.t, "accepted routes to it", m.accepts("RDS"), []string{})
		f.batch(routes("s", "y", "c"))
		check(f.t, "routes away from it", m.news(), []string{"RDS s"})
		f.batch(noClusters("a"))
		check(f.t, "it goes", m.news(), []string{})
		check(f.t, "accepted listeners", m.accepts("LDS"), []string{"CDS -b", "EDS -b"})
		check(f.t, "accepted all", append(m.accepts("CDS", "EDS"), m.accepts("RDS")...), []string{"CDS -a", "EDS -a"})
	})
}

// TestRemovalDelay: a cluster that listeners have sent connections to stays for the option's time,
// which WaitApplied does not wait for; one that only routes have referenced is removed at once.
func TestRemovalDelay(t *testing.T) {
	begin := []change{clusters("a", "b", "c"), routes("r", "x", "b"), httpListener("h", "r"), tcpListener("l", "a")}
	phasesTest(t, ads.Options{RemovalDelay: 30 * time.Second}, begin, func(f *fixture, m *manual) {
		start := time.Now()
		f.batch(noClusters("a", "b"), routes("r", "x", "c"), tcpListener("l", "c"))
		check(f.t, "new", m.news(), []string{"LDS l", "RDS r"})
		check(f.t, "accepted", m.accepts("LDS", "RDS"), []string{"CDS -b", "EDS -b"})
		m.acceptsAll()
		f.waitApplied()
		if took := time.Since(start); took > 0 {
			f.t.Errorf("WaitApplied took %v", took)
		}
		time.Sleep(30*time.Second - 1)
		check(f.t, "before the delay", m.news(), []string{})
		time.Sleep(2 * time.Nanosecond)
		check(f.t, "after it", m.news(), []string{"CDS -a", "EDS -a"})
	})
}

// TestRemovedListenersDrain: the delay is also that of listeners that have gone.
func TestRemovedListenersDrain(t *testing.T) {
	begin := []change{clusters("a"), tcpListener("l", "a"), tcpListener("k", "a")}
	phasesTest(t, ads.Options{RemovalDelay: 30 * time.Second}, begin, func(f *fixture, m *manual) {
		f.batch(noClusters("a"), without(envoy.ListenerType, "l", "k"))
		check(f.t, "gone", m.news(), []string{"LDS -k", "LDS -l"})
		check(f.t, "accepted", m.accepts("LDS"), []string{})
		time.Sleep(30*time.Second + 1)
		check(f.t, "after the delay", m.news(), []string{"CDS -a", "EDS -a"})
	})
}

// TestAssignmentsOfClustersThatHaveGone: a SotW client that asks for the assignment of a
// cluster that it was sent, and that has gone since, is answered at once: it accepts no
// clusters before. One that it was never sent is not answered.
func TestAssignmentsOfClustersThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		f.batch(atFirst()...)
		m := f.manual(false).subscribed([]string{"a"}, []string{"r"})
		f.batch(clusters("b"))
		check(f.t, "new", m.news(), []string{"CDS b"})
		f.batch(noClusters("b"))
		f.subscribe(m.Client, envoy.LoadAssignmentType, "b", "never")
		check(f.t, "asked for b", m.news(), []string{"EDS -b"})
		check(f.t, "accepted endpoints", m.accepts("EDS"), []string{})
		check(f.t, "accepted clusters", m.accepts("CDS"), []string{"CDS -b"})
	})
}

// TestResumedStreams: a client that comes back, and lists its clusters, keeps them until it has
// subscribed to listeners and routes and has accepted them, for a second.
func TestResumedStreams(t *testing.T) {
	for name, asks := range map[string]bool{"asks for routes": true, "asks for clusters only": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, ads.Options{}, nil)
				f.batch(clusters("a", "b"), routes("r", "x", "a"))
				old := f.manual(true).subscribed([]string{"a", "b"}, []string{"r"})
				versions := func(typeURL string) map[string]string {
					out := make(map[string]string)
					for name, r := range old.State().Resources(typeURL) {
						out[name] = r.Version
					}
					return out
				}
				old.Close()
				synctest.Wait()
				f.batch(noClusters("a"), routes("r", "x", "b"))
				stream, received, nonce := f.deltaStream()
				send := func(r *discovery.DeltaDiscoveryRequest) {
					if err := stream.Send(r); err != nil {
						f.t.Fatal(err)
					}
					synctest.Wait()
				}
				send(&discovery.DeltaDiscoveryRequest{
					Node: node("a", "shop"), TypeUrl: envoy.ClusterType, InitialResourceVersions: versions(envoy.ClusterType),
				})
				time.Sleep(time.Second - 1)
				check(f.t, "before a second has passed", received(), []string{})
				if !asks {
					time.Sleep(2 * time.Nanosecond)
					check(f.t, "after it", received(), []string{"CDS -a"})
					return
				}
				send(&discovery.DeltaDiscoveryRequest{TypeUrl: envoy.ListenerType})
				send(&discovery.DeltaDiscoveryRequest{
					TypeUrl: envoy.RouteType, ResourceNamesSubscribe: []string{"r"}, InitialResourceVersions: versions(envoy.RouteType),
				})
				time.Sleep(2 * time.Second)
				check(f.t, "routes", received(), []string{"RDS r"})
				send(&discovery.DeltaDiscoveryRequest{TypeUrl: envoy.RouteType, ResponseNonce: *nonce})
				check(f.t, "accepted", received(), []string{"CDS -a"})
			})
		})
	}
}

// deltaStream opens a stream; received returns the resources since the last call, and nonce the
// nonce of the last response. All types but routes are accepted.
func (f *fixture) deltaStream() (
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, received func() []string, nonce *string,
) {
	f.t.Helper()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
	if err != nil {
		f.t.Fatal(err)
	}
	var mu sync.Mutex // synctest.Wait orders receiving before reading, but not the other way round
	got, nonce := []string{}, new(string)
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			mu.Lock()
			if *nonce = r.GetNonce(); r.GetTypeUrl() != envoy.RouteType {
				_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
			}
			for _, a := range r.GetResources() {
				got = append(got, short(r.GetTypeUrl())+" "+a.GetName())
			}
			for _, name := range r.GetRemovedResources() {
				got = append(got, short(r.GetTypeUrl())+" -"+name)
			}
			mu.Unlock()
		}
	}()
	return stream, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		out := got
		got = []string{}
		return out
	}, nonce
}

// TestRemovalsBesideUnknownNames: a client that must get a response about a missing name also gets
// the removals of the meantime.
func TestRemovalsBesideUnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		f.batch(clusters("a"), tcpListener("l", "a"), tcpListener("k", "a"))
		m := f.manual(true)
		f.subscribe(m.Client, envoy.ListenerType, "*", "unknown")
		check(f.t, "at first", m.news(), []string{"LDS k", "LDS l"})
		f.batch(without(envoy.ListenerType, "k"))
		check(f.t, "before it accepts", m.news(), []string{})
		check(f.t, "then", m.accepts("LDS"), []string{"LDS -k"})
	})
}
