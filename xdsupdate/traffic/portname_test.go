// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestPortOfKnownName: a ServiceEntry adds a port to a Kubernetes host under the name of one of its ports. Pods say which port
// they serve by its name, and serve both; endpoints of the entry say it by its number, and serve that of the entry only (T79).
func TestPortOfKnownName(t *testing.T) {
	t.Parallel()
	s := newScene(t, traffic.Options{})
	svc := testService("shop", "cart.shop.svc.cluster.local", 80)
	svc.Ports[0].Name = "http"
	s.service(svc, endpoint("10.0.0.1", 8080, "http", ""))
	s.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart}
spec:
  hosts: [cart.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 81, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.2}]
`)
	answer := s.ask(in("sidecar", "shop"), envoy.LoadAssignmentType,
		"outbound|80||cart.shop.svc.cluster.local", "outbound|81||cart.shop.svc.cluster.local")
	got := make(map[string][]string)
	for name, r := range answer.resources {
		assignment, ok := r.(*endpointv3.ClusterLoadAssignment)
		if !ok {
			t.Fatalf("%s is a %T", name, r)
		}
		for _, l := range assignment.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				got[name] = append(got[name], e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
		slices.Sort(got[name])
	}
	want := map[string][]string{
		"outbound|80||cart.shop.svc.cluster.local": {"10.0.0.1"},
		"outbound|81||cart.shop.svc.cluster.local": {"10.0.0.1", "10.0.0.2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}
