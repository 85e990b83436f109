// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestAssignmentsHaveTheirNames: a gRPC client that checks whether the name of a resource is the name in its message
// finds them equal, also in the empty assignments of services that have gone.
func TestAssignmentsHaveTheirNames(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{}, service("a", "shop"), service("b", "shop"))
				f.eds("a", "shop", endpoint("10.0.0.1", 80))
				f.eds("b", "shop", endpoint("10.0.0.2", 80))
				f.flush()
				empty := 0
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: grpcNode("n", "shop"), Answer: func(r xdstest.Response) error {
					for i, res := range r.Resources {
						m, err := res.Message()
						if a, ok := m.(*endpointv3.ClusterLoadAssignment); ok && err == nil {
							check(t, "the name in the message", a.GetClusterName(), r.Names()[i])
							if len(a.GetEndpoints()) == 0 {
								empty++
							}
						}
					}
					return nil
				}})
				names := []string{cluster("a"), cluster("b"), cluster("none")}
				f.subscribe(c, envoy.ClusterType, names...)
				f.subscribe(c, envoy.LoadAssignmentType, names...)
				synctest.Wait()
				f.SvcUpdate(shard, "b", "shop", registry.EventDelete)
				f.services.set(service("a", "shop"))
				f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
				f.flush()
				synctest.Wait()
				check(t, "empty assignments", empty, 1)
			})
		})
	}
}

// TestAnnouncedToReturning: a gRPC client that comes back, and lists routes that have changed meanwhile, is sent the
// new routes: the server does not have the old ones, which an announcement would have to repeat.
func TestAnnouncedToReturning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serveDiscovery(t, ads.Options{}, nil)
		f.batch(clusters("a", "b"), routes("r", "x", "b"))
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
		if err != nil {
			t.Fatal(err)
		}
		ask := func(typeURL, name string) *discovery.DeltaDiscoveryResponse {
			t.Helper()
			err := stream.Send(&discovery.DeltaDiscoveryRequest{
				Node: grpcNode("n", "shop"), TypeUrl: typeURL, ResourceNamesSubscribe: []string{name}, InitialResourceVersions: map[string]string{name: "1"},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		ask(envoy.ClusterType, "a")
		r := ask(envoy.RouteType, "r")
		var sent routev3.RouteConfiguration
		if err := r.GetResources()[0].GetResource().UnmarshalTo(&sent); err != nil {
			t.Fatal(err)
		}
		if sent.GetName() != "r" || len(sent.GetVirtualHosts()) != 1 {
			t.Errorf("the client is sent %v", &sent)
		}
	})
}
