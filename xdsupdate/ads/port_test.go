// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// headless makes a service one whose clients choose an endpoint themselves.
func headless(provider registry.ProviderID) func(*registry.Service) {
	return func(s *registry.Service) {
		s.Resolution = registry.Passthrough
		s.Attributes.Provider = provider
	}
}

// TestHeadlessServices: a gRPC client is sent the endpoints of a headless service; an
// Envoy, which connects to where its client wants to, is not. A ServiceEntry without
// resolution has no endpoints, so that a gRPC client finds nothing.
func TestHeadlessServices(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop", headless(registry.Kubernetes)), service("b", "shop", headless(registry.External)))
				for _, host := range []string{"a", "b"} {
					f.eds(host, "shop", endpoint("10.0.0.1", 80))
				}
				f.flush()
				client := f.client(xdstest.ClientOptions{Delta: delta, Node: grpcNode("a", "shop")})
				f.followAll(client)
				check(t, "addresses of a gRPC client", addressesOf(t, client, "a"), []string{"10.0.0.1"})
				for _, typeURL := range []string{envoy.ListenerType, envoy.ClusterType, envoy.LoadAssignmentType} {
					f.subscribe(client, typeURL, cluster("b"), "b:80")
				}
				f.waitApplied()
				check(t, "listeners", client.State().Names(envoy.ListenerType), []string{"a:80"})
				check(t, "assignments", client.State().Names(envoy.LoadAssignmentType), []string{cluster("a")})

				proxy := f.client(xdstest.ClientOptions{Delta: delta, Node: node("b", "shop")})
				f.subscribe(proxy, envoy.ClusterType)
				f.await(proxy, envoy.ClusterType, cluster("a"), cluster("b"))
				f.subscribe(proxy, envoy.LoadAssignmentType, cluster("a"))
				f.waitApplied()
				check(t, "assignments of an Envoy", len(proxy.State().Names(envoy.LoadAssignmentType)), 0)
				check(t, "type", clusterOf(t, proxy, "a").GetType(), clusterv3.Cluster_ORIGINAL_DST)
			})
		})
	}
}

// TestDNSClustersOfTheOwnClusterOnly: a cluster has only endpoints that the proxy's cluster may
// have, independent of earlier clients.
func TestDNSClustersOfTheOwnClusterOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restricted := endpoint("b.example.com", 80)
		restricted.Shared = &registry.EndpointAttributes{ClusterID: "c2", DiscoverableFromSameCluster: true}
		f := serve(t, ads.Options{}, service("a", "shop", func(s *registry.Service) { s.Resolution = registry.DNSLB }))
		f.eds("a", "shop", endpoint("a.example.com", 80), restricted)
		f.flush()
		for clusterID, want := range map[string][]string{"c1": {"a.example.com"}, "c2": {"a.example.com", "b.example.com"}} {
			n := node("a", "shop")
			n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"CLUSTER_ID": structpb.NewStringValue(clusterID)}}
			c := f.client(xdstest.ClientOptions{Delta: true, Node: n})
			f.subscribe(c, envoy.ClusterType)
			f.await(c, envoy.ClusterType, cluster("a"))
			var got []string
			for _, l := range clusterOf(t, c, "a").GetLoadAssignment().GetEndpoints() {
				got = append(got, addressesIn(l)...)
			}
			check(t, clusterID, got, want)
		}
	})
}

// TestUnixSocketsAreForEnvoys: gRPC clients cannot connect to Unix sockets, and get the other
// endpoints, independent of earlier clients.
func TestUnixSocketsAreForEnvoys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.eds("a", "shop", endpoint("/run/a.sock", 0), endpoint("10.0.0.1", 80))
		f.flush()
		for range 2 { // of each the second follows the other's
			for want, n := range map[int]*core.Node{2: node("a", "shop"), 1: grpcNode("a", "shop")} {
				c := f.client(xdstest.ClientOptions{Delta: true, Node: n})
				f.subscribe(c, envoy.LoadAssignmentType, cluster("a"))
				f.await(c, envoy.LoadAssignmentType, cluster("a"))
				check(t, "endpoints for "+n.GetUserAgentName(), len(addressesOf(t, c, "a")), want)
			}
		}
	})
}

// clusterOf returns a client's cluster.
func clusterOf(tb testing.TB, c *xdstest.Client, host string) *clusterv3.Cluster {
	tb.Helper()
	m, err := c.State().Resources(envoy.ClusterType)[cluster(host)].Message()
	if err != nil {
		tb.Fatal(err)
	}
	return m.(*clusterv3.Cluster)
}
