// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestBackendThatDoesNotExist: a route for Kubernetes to a cluster that is not there is
// answered with 500, and not, as others, with 503.
func TestBackendThatDoesNotExist(t *testing.T) {
	s := stage(t, traffic.Options{}, nil, populate(testService("shop", "cart.shop.svc.cluster.local", 80)))
	for semantics, want := range map[string]routev3.RouteAction_ClusterNotFoundResponseCode{
		"gateway": routev3.RouteAction_INTERNAL_SERVER_ERROR, "": routev3.RouteAction_SERVICE_UNAVAILABLE,
	} {
		s.apply(semanticRules(semantics, "/"))
		s.applied()
		route := s.routes(edge(), "http.80").GetVirtualHosts()[0].GetRoutes()[0]
		if got := route.GetRoute().GetClusterNotFoundResponseCode(); got != want {
			t.Errorf("semantics %q: %v, want %v", semantics, got, want)
		}
	}
}
